// Spans of given durations, some at a time, traced by OpenTelemetry and profiled by Pyroscope's SDK.
'use strict';
const { createHash } = require('crypto');
const { setTimeout: sleep } = require('timers/promises');
const { trace } = require('@opentelemetry/api');
const { NodeSDK } = require('@opentelemetry/sdk-node');
const Pyroscope = require('@pyroscope/nodejs');

const number = (name) => Number(process.env[name]);
const sdk = new NodeSDK();
sdk.start();
Pyroscope.init({
  appName: process.env.PYROSCOPE_APPLICATION_NAME,
  serverAddress: process.env.PYROSCOPE_SERVER_ADDRESS,
  flushIntervalMs: 10000,
  wall: { collectCpuTime: true, samplingDurationMs: 10000 },
});
Pyroscope.start();
const tracer = trace.getTracer('complete');

function spin() {
  let digest = Buffer.alloc(32);
  for (const end = Date.now() + number('BUSY_MS'); Date.now() < end; ) digest = createHash('sha256').update(digest).digest();
}

// Each piece between two awaits is labelled: there is no bridge between the two SDKs yet.
async function work(duration) {
  const span = tracer.startSpan('work');
  const { spanId, traceId } = span.spanContext();
  for (const end = Date.now() + duration; Date.now() < end; await sleep(number('IDLE_MS')))
    Pyroscope.wrapWithLabels({ span_id: spanId, trace_id: traceId }, spin);
  span.end();
}

async function worker(spans) {
  while (spans.length > 0) await work(Number(spans.shift()));
}

async function main() {
  const spans = process.env.SPANS_MS.split(',');
  await Promise.all(Array.from({ length: number('WORKERS') }, () => worker(spans)));
  await sleep(number('LINGER_MS'));
  await sdk.shutdown();
  await Pyroscope.stop();
}
main();
