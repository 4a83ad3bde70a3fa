// Work in spans for half a minute, traced by OpenTelemetry and profiled by Pyroscope's SDK.
'use strict';
const { createHash } = require('crypto');
const { setTimeout: sleep } = require('timers/promises');
const { trace } = require('@opentelemetry/api');
const { NodeSDK } = require('@opentelemetry/sdk-node');
const Pyroscope = require('@pyroscope/nodejs');

const sdk = new NodeSDK(); // service.name is $OTEL_SERVICE_NAME, spans go to http://localhost:4318
sdk.start();
Pyroscope.init({
  appName: process.env.OTEL_SERVICE_NAME, // the same name
  serverAddress: process.env.PYROSCOPE_SERVER_ADDRESS,
  flushIntervalMs: 10000,
  wall: { collectCpuTime: true, samplingDurationMs: 10000 },
});
Pyroscope.start();
const tracer = trace.getTracer('example');

// There is no bridge between the two SDKs yet: this labels what f does before its first await.
function inSpan(name, f) {
  return tracer.startActiveSpan(name, (span) => {
    const { spanId, traceId } = span.spanContext();
    try {
      return Pyroscope.wrapWithLabels({ span_id: spanId, trace_id: traceId }, f);
    } finally {
      span.end();
    }
  });
}

function work() {
  let digest = Buffer.alloc(32);
  for (const end = Date.now() + 100; Date.now() < end; ) digest = createHash('sha256').update(digest).digest();
}

async function main() {
  for (const end = Date.now() + 30000; Date.now() < end; await sleep(1)) {
    inSpan('checkout', work);
    inSpan('search', work);
  }
  await sdk.shutdown();
  await Pyroscope.stop();
}
main();
