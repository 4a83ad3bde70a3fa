//! Spans of given durations on a few threads, traced by OpenTelemetry and profiled by Pyroscope's SDK.
use opentelemetry::trace::{Span, Tracer, TracerProvider};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::trace::SdkTracerProvider;
use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};
use pyroscope::pyroscope::PyroscopeAgentBuilder;
use std::env::var;
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

fn number(name: &str) -> u64 {
    var(name).unwrap().parse().unwrap()
}

fn time(name: &str) -> Duration {
    Duration::from_millis(number(name))
}

fn spin() {
    let (end, mut sum) = (Instant::now() + time("BUSY_MS"), 0u64);
    while Instant::now() < end {
        for i in 0..10_000u64 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(i));
        }
    }
}

fn main() {
    let exporter = SpanExporter::builder().with_http().build().unwrap();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).build();
    let backend = pprof_backend(PprofConfig { sample_rate: 100 }, BackendConfig::default());
    let (server, name) = (var("PYROSCOPE_SERVER_ADDRESS").unwrap(), var("PYROSCOPE_APPLICATION_NAME").unwrap());
    let agent = PyroscopeAgentBuilder::new(server, name, 100, "pyroscope-rs", "2.1.5", backend)
        .build().unwrap().start().unwrap();
    let spans: Vec<u64> = var("SPANS_MS").unwrap().split(',').map(|text| text.parse().unwrap()).collect();
    let spans = Arc::new(Mutex::new(spans.into_iter()));

    let workers: Vec<_> = (0..number("WORKERS")).map(|_| {
        let (spans, tracer) = (spans.clone(), provider.tracer("complete"));
        let (add_label, remove_label) = agent.tag_wrapper();
        spawn(move || loop {
            let next = spans.lock().unwrap().next();
            let Some(duration) = next else { return };
            let mut span = tracer.start("work");
            let context = span.span_context();
            let ids = [("span_id", context.span_id().to_string()), ("trace_id", context.trace_id().to_string())];
            for (key, value) in &ids {
                add_label(key.to_string(), value.clone()).unwrap();
            }
            let end = Instant::now() + Duration::from_millis(duration);
            while Instant::now() < end {
                spin();
                sleep(time("IDLE_MS"));
            }
            for (key, value) in &ids {
                remove_label(key.to_string(), value.clone()).unwrap();
            }
            span.end();
        })
    }).collect();
    for worker in workers {
        worker.join().unwrap();
    }
    sleep(time("LINGER_MS"));
    provider.shutdown().unwrap();
    agent.stop().unwrap().shutdown();
}
