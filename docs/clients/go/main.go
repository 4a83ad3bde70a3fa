// Work in spans for half a minute, traced by OpenTelemetry and profiled by Pyroscope's SDK.
package main

import (
	"context"
	"crypto/sha256"
	"log"
	"os"
	"time"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func work(name string) {
	_, span := otel.Tracer("example").Start(context.Background(), name)
	defer span.End()
	sum := make([]byte, 32)
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); {
		next := sha256.Sum256(sum)
		sum = next[:]
	}
}

func main() {
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithInsecure()) // localhost:4317
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter)) // service.name is $OTEL_SERVICE_NAME
	otel.SetTracerProvider(otelpyroscope.NewTracerProvider(provider))      // labels samples with the span's ids
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: os.Getenv("OTEL_SERVICE_NAME"), // the same name
		ServerAddress:   os.Getenv("PYROSCOPE_SERVER_ADDRESS"),
	})
	if err != nil {
		log.Fatal(err)
	}

	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		work("checkout")
		work("search")
	}
	provider.Shutdown(context.Background())
	profiler.Stop()
}
