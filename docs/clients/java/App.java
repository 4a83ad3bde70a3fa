import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;

/** Work in spans for half a minute; OpenTelemetry's agent traces it, and its extension from Pyroscope profiles it. */
public class App {
    static long sum;

    static void work(Tracer tracer, String name) {
        Span span = tracer.spanBuilder(name).startSpan();
        try (Scope scope = span.makeCurrent()) {
            for (long end = System.nanoTime() + 100_000_000L; System.nanoTime() < end;)
                for (int i = 0; i < 10_000; i++)
                    sum = sum * 31 + i;
        } finally {
            span.end();
        }
    }

    public static void main(String[] arguments) {
        Tracer tracer = GlobalOpenTelemetry.getTracer("example");
        for (long end = System.nanoTime() + 30_000_000_000L; System.nanoTime() < end;) {
            work(tracer, "checkout");
            work(tracer, "search");
        }
    }
}
