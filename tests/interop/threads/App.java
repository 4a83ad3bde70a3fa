import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** A server with eight threads, and a client that asks it; both in spans of OpenTelemetry's agent. */
public class App {
    static volatile long sum;
    static volatile byte[] last;

    static void burn(long ms) {
        for (long end = System.nanoTime() + ms * 1_000_000L; System.nanoTime() < end;) {
            for (int i = 0; i < 20_000; i++)
                sum = sum * 31 + i;
            last = new byte[4096];
        }
    }

    static void query(Tracer tracer) {
        Span span = tracer.spanBuilder("query").startSpan();
        try (Scope scope = span.makeCurrent()) {
            burn(20);
        } finally {
            span.end();
        }
    }

    static void cart() { burn(5); }

    static void search(Tracer tracer) {
        burn(10);
        query(tracer);
        burn(5);
    }

    static void report(Tracer tracer) {
        for (int i = 0; i < 8; i++)
            query(tracer);
        burn(100);
    }

    static void ask(HttpClient client, String url) {
        try {
            client.send(HttpRequest.newBuilder(URI.create(url)).build(), HttpResponse.BodyHandlers.ofString());
            Thread.sleep(10);
        } catch (Exception failure) {
            throw new IllegalStateException(failure);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Tracer tracer = GlobalOpenTelemetry.getTracer("threads");
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        AtomicInteger begun = new AtomicInteger();
        String pool = System.getProperty("pool", "server-");
        server.setExecutor(Executors.newFixedThreadPool(8, work -> new Thread(work, pool + begun.incrementAndGet())));
        server.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            if (path.equals("/report")) report(tracer);
            else if (path.equals("/search")) search(tracer);
            else cart();
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort();
        HttpClient client = HttpClient.newHttpClient();
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        Thread[] threads = new Thread[4];
        for (int t = 0; t < threads.length; t++) {
            threads[t] = new Thread(() -> {
                for (int i = 0; System.nanoTime() < end; i++)
                    ask(client, url + (i % 20 == 0 ? "/report" : i % 3 == 0 ? "/search" : "/cart"));
            }, "load-" + t);
            threads[t].start();
        }
        for (Thread thread : threads)
            thread.join();
        Thread.sleep(12_000); // the profiler sends what it has every ten seconds
        System.exit(0);
    }
}
