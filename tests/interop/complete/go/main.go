// Spans of given durations on a few goroutines, traced by OpenTelemetry and profiled by Pyroscope's SDK.
package main

import (
	"context"
	"crypto/sha256"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	otelpyroscope "github.com/grafana/otel-profiling-go"
	"github.com/grafana/pyroscope-go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func number(name string) time.Duration {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		log.Fatal(err)
	}
	return time.Duration(n) * time.Millisecond
}

func spin(busy time.Duration) {
	sum := make([]byte, 32)
	for end := time.Now().Add(busy); time.Now().Before(end); {
		next := sha256.Sum256(sum)
		sum = next[:]
	}
}

func work(duration, busy, idle time.Duration) {
	_, span := otel.Tracer("complete").Start(context.Background(), "work")
	defer span.End()
	for end := time.Now().Add(duration); time.Now().Before(end); time.Sleep(idle) {
		spin(busy)
	}
}

func main() {
	exporter, err := otlptracegrpc.New(context.Background(), otlptracegrpc.WithInsecure())
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	otel.SetTracerProvider(otelpyroscope.NewTracerProvider(provider))
	profiler, err := pyroscope.Start(pyroscope.Config{
		ApplicationName: os.Getenv("PYROSCOPE_APPLICATION_NAME"),
		ServerAddress:   os.Getenv("PYROSCOPE_SERVER_ADDRESS"),
	})
	if err != nil {
		log.Fatal(err)
	}

	spans := make(chan time.Duration)
	var workers sync.WaitGroup
	for range int(number("WORKERS") / time.Millisecond) {
		workers.Go(func() {
			for duration := range spans {
				work(duration, number("BUSY_MS"), number("IDLE_MS"))
			}
		})
	}
	for text := range strings.SplitSeq(os.Getenv("SPANS_MS"), ",") {
		n, _ := strconv.Atoi(text)
		spans <- time.Duration(n) * time.Millisecond
	}
	close(spans)
	workers.Wait()
	time.Sleep(number("LINGER_MS"))
	provider.Shutdown(context.Background())
	profiler.Stop()
}
