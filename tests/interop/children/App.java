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
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Requests whose parts are spans. Each kind of span does its work in a function of its own. */
public class App {
    static final Tracer TRACER = GlobalOpenTelemetry.getTracer("children");
    static final ExecutorService HELPERS = Executors.newFixedThreadPool(4);
    static volatile long sum;
    static volatile byte[] last;

    static void burn(long ms) {
        for (long end = System.nanoTime() + ms * 1_000_000L; System.nanoTime() < end;) {
            for (int i = 0; i < 20_000; i++)
                sum = sum * 31 + i;
            last = new byte[4096];
        }
    }

    static void inSpan(String name, Runnable work) {
        Span span = TRACER.spanBuilder(name).startSpan();
        try (Scope scope = span.makeCurrent()) {
            work.run();
        } finally {
            span.end();
        }
    }

    static void acceptOrder() { burn(10); }
    static void loadItems() { burn(15); inSpan("query", App::readRow); burn(15); }
    static void readRow() { burn(30); }
    static void renderPage() { burn(20); }
    static void sendMail() { burn(40); }
    static void findPrice() { burn(30); }
    static void countStock() { burn(30); }

    /** One after the other. */
    static void order() {
        inSpan("load", App::loadItems);
        acceptOrder();
        inSpan("render", App::renderPage);
    }

    /** Three at the same time, on three threads. */
    static void offer() throws Exception {
        Future<?> price = HELPERS.submit(() -> inSpan("price", App::findPrice));
        Future<?> stock = HELPERS.submit(() -> inSpan("stock", App::countStock));
        inSpan("mail", App::sendMail);
        price.get();
        stock.get();
        acceptOrder();
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
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(2));
        server.createContext("/order", exchange -> {
            order();
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.createContext("/offer", exchange -> {
            try {
                offer();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
            exchange.sendResponseHeaders(200, -1);
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort();
        HttpClient client = HttpClient.newHttpClient();
        for (long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L, i = 0; System.nanoTime() < end; i++)
            ask(client, url + (i % 2 == 0 ? "/order" : "/offer"));
        Thread.sleep(12_000); // the profiler sends what it has every ten seconds
        System.exit(0);
    }
}
