import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.common.Attributes;
import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.api.metrics.LongCounter;
import io.opentelemetry.api.metrics.Meter;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.logging.Level;
import java.util.logging.Logger;

/** Calls itself over HTTP under the Java agent, which makes spans, metrics and logs of that, and adds some of its own. */
public class App {
    private static final Logger LOGGER = Logger.getLogger("interop");
    private static final Tracer TRACER = GlobalOpenTelemetry.getTracer("interop", "1.2.3");
    private static final Meter METER = GlobalOpenTelemetry.getMeter("interop");
    private static final LongCounter REQUESTS = METER.counterBuilder("interop.requests").setUnit("{request}").setDescription("Requests.").build();
    private static final DoubleHistogram DURATION = METER.histogramBuilder("interop.duration").setUnit("s").build();

    private static void answer(HttpExchange exchange) throws java.io.IOException {
        LOGGER.log(Level.INFO, "handled {0}, \u00e9\u20ac", exchange.getRequestURI().getPath());
        exchange.sendResponseHeaders(exchange.getRequestURI().getPath().equals("/missing") ? 404 : 200, 2);
        exchange.getResponseBody().write("ok".getBytes());
        exchange.close();
    }

    private static void call(HttpClient client, int port, String path) throws Exception {
        client.send(HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build(), BodyHandlers.ofString());
    }

    private static void round(int round, HttpClient client, int port) throws Exception {
        Span span = TRACER.spanBuilder("round " + round).setAttribute("empty", "").setAttribute("number", Long.MIN_VALUE)
            .setAttribute(AttributeKey.stringArrayKey("texts"), java.util.List.of("a", "")).startSpan();
        try (Scope scope = span.makeCurrent()) {
            span.addEvent("event", Attributes.of(AttributeKey.stringKey("k"), "v"));
            call(client, port, "/found");
            call(client, port, "/missing");
            for (int value = 0; value < 5; value++) {
                Attributes route = Attributes.of(AttributeKey.stringKey("route"), "/" + value % 2);
                REQUESTS.add(value, route);
                DURATION.record(value / 8.0, route);
            }
            LOGGER.log(Level.SEVERE, "round " + round, new IllegalStateException("on purpose"));
            span.setStatus(StatusCode.ERROR, "failed on purpose");
        } finally {
            span.end();
        }
    }

    public static void main(String[] arguments) throws Exception {
        LOGGER.setUseParentHandlers(false);
        METER.gaugeBuilder("interop.temperature").buildWithCallback(measurement -> measurement.record(36.6));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/", App::answer);
        server.start();
        HttpClient client = HttpClient.newHttpClient();
        for (int round = 0; round < 3; round++) {
            round(round, client, server.getAddress().getPort());
        }
        Thread.sleep(3000);    // the metrics of the JVM leave by a timer, not at the end
        server.stop(0);
        System.exit(0);
    }
}
