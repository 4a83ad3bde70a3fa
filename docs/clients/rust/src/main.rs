//! Work in spans for half a minute, traced by OpenTelemetry and profiled by Pyroscope's SDK.
use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SdkTracerProvider;
use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};
use pyroscope::pyroscope::PyroscopeAgentBuilder;
use std::time::{Duration, Instant};

fn work() {
    let (end, mut sum) = (Instant::now() + Duration::from_millis(100), 0u64);
    while Instant::now() < end {
        for i in 0..10_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
    }
}

fn main() {
    let exporter = SpanExporter::builder().with_http().build().unwrap(); // http://localhost:4318
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build(); // service.name is $OTEL_SERVICE_NAME
    let tracer = provider.tracer("example");
    let service = std::env::var("OTEL_SERVICE_NAME").unwrap(); // the same name
    let server = std::env::var("PYROSCOPE_SERVER_ADDRESS").unwrap();
    let backend = pprof_backend(PprofConfig { sample_rate: 100 }, BackendConfig::default());
    let agent = PyroscopeAgentBuilder::new(server, service, 100, "pyroscope-rs", "2.1.5", backend)
        .build().unwrap().start().unwrap();
    let (add_label, remove_label) = agent.tag_wrapper();

    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        for name in ["checkout", "search"] {
            let mut span = tracer.start(name);
            // There is no bridge between the two SDKs yet: this labels what this thread does.
            let context = span.span_context();
            let ids = [("span_id", context.span_id().to_string()), ("trace_id", context.trace_id().to_string())];
            for (key, value) in &ids {
                add_label(key.to_string(), value.clone()).unwrap();
            }
            work();
            for (key, value) in &ids {
                remove_label(key.to_string(), value.clone()).unwrap();
            }
            span.end();
        }
    }
    provider.shutdown().unwrap();
    agent.stop().unwrap().shutdown();
}
