// Sends the same traces, metrics and logs in each run, but for times and ids. NodeSDK reads the OTEL_ variables.
const { DiagConsoleLogger, DiagLogLevel, SpanKind, SpanStatusCode, context, diag, metrics, trace } = require("@opentelemetry/api");
const { SeverityNumber, logs } = require("@opentelemetry/api-logs");
const { NodeSDK, metrics: metricsSdk } = require("@opentelemetry/sdk-node");

const SCOPE = "interop", VERSION = "1.2.3";

function makeInstruments() {
    const meter = metrics.getMeter(SCOPE, VERSION, { schemaUrl: "https://example.com/schema" });
    meter.createObservableCounter("interop.observed").addCallback((result) => result.observe(17, { yes: true }));
    return {
        requests: meter.createCounter("interop.requests", { unit: "{request}", description: "Requests." }),
        active: meter.createUpDownCounter("interop.active"),
        duration: meter.createHistogram("interop.duration", { unit: "s" }),
        exponential: meter.createHistogram("interop.exponential"),
        temperature: meter.createGauge("interop.temperature"),
    };
}

function record(instruments) {
    for (let value = 0; value < 5; value++) {
        const attributes = { route: `/${value % 2}` };
        instruments.requests.add(value, attributes);
        instruments.duration.record(value / 10, attributes);
        instruments.exponential.record(value, attributes);
    }
    instruments.active.add(-1);
    instruments.temperature.record(36.6);
}

function emit(logger, round, severityNumber, body, where) {
    logger.emit({ severityNumber, severityText: SeverityNumber[severityNumber], body, context: where,
        attributes: { round, bytes: new Uint8Array([0, 255]), map: { a: "b" } } });
}

function play(round, instruments, logger, previous) {
    const tracer = trace.getTracer(SCOPE, VERSION);
    const links = previous ? [{ context: previous, attributes: { previous: round - 1 } }] : [];
    // The SDK sends a number without a fraction as an integer, also 1.5e300, which no receiver of JSON takes.
    const attributes = { text: "é€", empty: "", number: -1, no: false, real: 1.5e-300, texts: ["a", ""], numbers: [0, 1] };
    const span = tracer.startSpan(`round ${round}`, { kind: SpanKind.SERVER, links, attributes });
    const inside = trace.setSpan(context.active(), span);
    const child = tracer.startSpan(`work ${round}`, { kind: SpanKind.CLIENT }, inside);
    child.addEvent("event", { k: "v" });
    child.setStatus({ code: SpanStatusCode.ERROR, message: "failed on purpose" });
    child.end();
    context.with(inside, () => record(instruments));
    emit(logger, round, SeverityNumber.INFO, `line ${round}, é€`, inside);
    emit(logger, round, SeverityNumber.ERROR, { n: round, list: [true] }, inside);
    emit(logger, round, SeverityNumber.WARN, undefined, context.active());
    span.end();
    return span.spanContext();
}

async function main() {
    diag.setLogger(new DiagConsoleLogger(), DiagLogLevel.WARN);
    const aggregation = { type: metricsSdk.AggregationType.EXPONENTIAL_HISTOGRAM };
    const sdk = new NodeSDK({ views: [{ instrumentName: "interop.exponential", aggregation }] });
    sdk.start();
    const instruments = makeInstruments(), logger = logs.getLogger(SCOPE, VERSION);
    let previous;
    for (let round = 0; round < 3; round++)
        previous = play(round, instruments, logger, previous);
    await sdk.shutdown();
}

main();
