import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/** Spans of given durations on a few threads; OpenTelemetry's agent traces them, and its extension from Pyroscope profiles them. */
public class App {
    static volatile long sum;

    static long number(String name) {
        return Long.parseLong(System.getenv(name));
    }

    static void spin() {
        long value = 1;
        for (long end = System.nanoTime() + number("BUSY_MS") * 1_000_000; System.nanoTime() < end;)
            for (int i = 0; i < 10_000; i++)
                value = value * 31 + i;
        sum = value;
    }

    static void work(Tracer tracer, long milliseconds) {
        Span span = tracer.spanBuilder("work").startSpan();
        try (Scope scope = span.makeCurrent()) {
            for (long end = System.nanoTime() + milliseconds * 1_000_000; System.nanoTime() < end;) {
                spin();
                Thread.sleep(number("IDLE_MS"));
            }
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        } finally {
            span.end();
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Tracer tracer = GlobalOpenTelemetry.getTracer("complete");
        ExecutorService workers = Executors.newFixedThreadPool((int) number("WORKERS"));
        for (String text : System.getenv("SPANS_MS").split(","))
            workers.submit(() -> work(tracer, Long.parseLong(text)));
        workers.shutdown();
        workers.awaitTermination(1, TimeUnit.HOURS);
        Thread.sleep(number("LINGER_MS"));
    }
}
