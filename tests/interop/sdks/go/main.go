// Program interop sends the same traces, metrics and logs in each run, but for times and ids. The OTEL_ variables say where and how.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/go-logr/logr/funcr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	logapi "go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/metric"
	logsdk "go.opentelemetry.io/otel/sdk/log"
	metricsdk "go.opentelemetry.io/otel/sdk/metric"
	tracesdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

const scope = "interop"

type telemetry struct {
	spans   *tracesdk.TracerProvider
	metrics *metricsdk.MeterProvider
	logs    *logsdk.LoggerProvider
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func exporters(ctx context.Context) (tracesdk.SpanExporter, metricsdk.Exporter, logsdk.Exporter) {
	var spans tracesdk.SpanExporter
	var metrics metricsdk.Exporter
	var logs logsdk.Exporter
	var problems [3]error
	if os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc" {
		spans, problems[0] = otlptracegrpc.New(ctx)
		metrics, problems[1] = otlpmetricgrpc.New(ctx)
		logs, problems[2] = otlploggrpc.New(ctx)
	} else {
		spans, problems[0] = otlptracehttp.New(ctx)
		metrics, problems[1] = otlpmetrichttp.New(ctx)
		logs, problems[2] = otlploghttp.New(ctx)
	}
	check(errors.Join(problems[:]...))
	return spans, metrics, logs
}

func start(ctx context.Context) telemetry {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(os.Stderr, "error:", err) }))
	// Levels of the SDK's logger: 1 is warnings, 4 information.
	otel.SetLogger(funcr.New(func(prefix, text string) { fmt.Fprintln(os.Stderr, "warning:", prefix, text) }, funcr.Options{Verbosity: 1}))
	spans, metrics, logs := exporters(ctx)
	exponential := metricsdk.NewView(metricsdk.Instrument{Name: "interop.exponential"},
		metricsdk.Stream{Aggregation: metricsdk.AggregationBase2ExponentialHistogram{MaxSize: 160, MaxScale: 20}})
	t := telemetry{
		tracesdk.NewTracerProvider(tracesdk.WithBatcher(spans)),
		metricsdk.NewMeterProvider(metricsdk.WithReader(metricsdk.NewPeriodicReader(metrics)), metricsdk.WithView(exponential)),
		logsdk.NewLoggerProvider(logsdk.WithProcessor(logsdk.NewBatchProcessor(logs))),
	}
	otel.SetTracerProvider(t.spans)
	otel.SetMeterProvider(t.metrics)
	return t
}

type instruments struct {
	requests    metric.Int64Counter
	active      metric.Int64UpDownCounter
	duration    metric.Float64Histogram
	exponential metric.Float64Histogram
	temperature metric.Float64Gauge
}

func newInstruments() instruments {
	meter := otel.Meter(scope, metric.WithInstrumentationVersion("1.2.3"), metric.WithSchemaURL("https://example.com/schema"))
	var i instruments
	var problems [6]error
	i.requests, problems[0] = meter.Int64Counter("interop.requests", metric.WithUnit("{request}"), metric.WithDescription("Requests."))
	i.active, problems[1] = meter.Int64UpDownCounter("interop.active")
	i.duration, problems[2] = meter.Float64Histogram("interop.duration", metric.WithUnit("s"))
	i.exponential, problems[3] = meter.Float64Histogram("interop.exponential")
	i.temperature, problems[4] = meter.Float64Gauge("interop.temperature")
	_, problems[5] = meter.Int64ObservableCounter("interop.observed", metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(17, metric.WithAttributes(attribute.Bool("yes", true)))
		return nil
	}))
	check(errors.Join(problems[:]...))
	return i
}

func emit(ctx context.Context, logger logapi.Logger, severity logapi.Severity, body attribute.Value, round int) {
	var record logapi.Record
	record.SetTimestamp(time.Now())
	record.SetSeverity(severity)
	record.SetSeverityText(severity.String())
	record.SetBody(body)
	record.AddAttributes(attribute.Int("round", round), attribute.ByteSlice("bytes", []byte{0, 255}), attribute.Map("map", attribute.String("a", "b")))
	logger.Emit(ctx, record)
}

func round(n int, i instruments, logger logapi.Logger, previous trace.SpanContext) trace.SpanContext {
	tracer := otel.Tracer(scope, trace.WithInstrumentationVersion("1.2.3"), trace.WithInstrumentationAttributes(attribute.String("scope", "a")))
	ctx, span := tracer.Start(context.Background(), fmt.Sprintf("round %d", n), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithLinks(trace.Link{SpanContext: previous, Attributes: []attribute.KeyValue{attribute.Int("previous", n-1)}}),
		trace.WithAttributes(attribute.String("text", "é€"), attribute.String("empty", ""), attribute.Int64("number", -1<<63), attribute.Bool("no", false),
			attribute.Float64("real", 1.5e300), attribute.StringSlice("texts", []string{"a", ""}), attribute.Int64Slice("numbers", []int64{0, 1})))
	_, child := tracer.Start(ctx, fmt.Sprintf("work %d", n), trace.WithSpanKind(trace.SpanKindClient))
	child.AddEvent("event", trace.WithAttributes(attribute.String("k", "v")))
	child.SetStatus(codes.Error, "failed on purpose")
	child.End()
	for value := range 5 {
		attributes := metric.WithAttributes(attribute.String("route", fmt.Sprintf("/%d", value%2)))
		i.requests.Add(ctx, int64(value), attributes)
		i.duration.Record(ctx, float64(value)/10, attributes)
		i.exponential.Record(ctx, float64(value), attributes)
	}
	i.active.Add(ctx, -1)
	i.temperature.Record(ctx, 36.6)
	emit(ctx, logger, logapi.SeverityInfo, attribute.StringValue(fmt.Sprintf("line %d, é€", n)), n)
	emit(ctx, logger, logapi.SeverityError, attribute.MapValue(attribute.Int("n", n), attribute.Slice("list", attribute.BoolValue(true))), n)
	emit(context.Background(), logger, logapi.SeverityWarn, attribute.Value{}, n)
	span.End()
	return span.SpanContext()
}

func main() {
	ctx := context.Background()
	t := start(ctx)
	i, logger := newInstruments(), t.logs.Logger(scope, logapi.WithInstrumentationVersion("1.2.3"))
	var previous trace.SpanContext
	for n := range 3 {
		previous = round(n, i, logger, previous)
		check(errors.Join(t.spans.ForceFlush(ctx), t.metrics.ForceFlush(ctx), t.logs.ForceFlush(ctx)))
	}
	check(errors.Join(t.spans.Shutdown(ctx), t.metrics.Shutdown(ctx), t.logs.Shutdown(ctx)))
}
