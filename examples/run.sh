#!/bin/sh
# The first run: starts profcol with its built-in configuration, replays a recording of real applications, shows what the join
# found, and keeps profcol running. `make run` builds profcol and calls this.
#   PROFCOL   the binary             (build/release/profcol)
#   OUT       where results go       (build/run)
#   ONCE=1    stop after the report  (for tests)
#   GRPC, HTTP, METRICS, EXPLORE: host:port to listen on, instead of 127.0.0.1:4317, 127.0.0.1:4318, localhost:8888 and
#             localhost:4319
set -eu
cd "$(dirname "$0")/.."
profcol=${PROFCOL:-build/release/profcol}
out=${OUT:-build/run}
grpc=${GRPC:-127.0.0.1:4317}
http=${HTTP:-127.0.0.1:4318}
metrics=${METRICS:-localhost:8888}
explore=${EXPLORE:-localhost:4319}
mkdir -p "$out"
rm -f "$out"/*.jsonl "$out/flame.html"
: >"$out/profcol.log"

# The built-in configuration, with a copy of what leaves each pipeline in a file for the report.
"$profcol" \
    --set "receivers.otlp.protocols.grpc.endpoint=$grpc" \
    --set "receivers.otlp.protocols.http.endpoint=$http" \
    --set "extensions.explore.endpoint=$explore" \
    --set "service.telemetry.metrics.readers=[{pull: {exporter: {prometheus: {host: ${metrics%:*}, port: ${metrics##*:}}}}}]" \
    --set "exporters.file/traces.path=$out/traces.jsonl" \
    --set "exporters.file/profiles.path=$out/profiles.jsonl" \
    --set "service.pipelines.traces.exporters=[debug, file/traces]" \
    --set "service.pipelines.profiles.exporters=[debug, file/profiles]" \
    2>"$out/profcol.log" &
pid=$!
trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true' EXIT
trap 'exit 0' INT TERM

for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    grep -q 'Everything is ready' "$out/profcol.log" && break
    if ! kill -0 "$pid" 2>/dev/null; then
        cat "$out/profcol.log" >&2
        echo "profcol could not start; is another collector using these ports? Set GRPC, HTTP, METRICS or EXPLORE to other addresses." >&2
        exit 1
    fi
    sleep 0.25
done

echo "profcol is running (log: $out/profcol.log). Sending it a recording of real applications ..."
python3 examples/play.py --http "http://$http" --speed 10
# Samples wait up to 5 s for their spans; then every file is complete.
sleep 6
echo
python3 examples/report.py "$out/traces.jsonl" "$out/profiles.jsonl" --html "$out/flame.html"
cat <<TEXT

What next:
  - open http://$explore in a browser: which requests are slow, where their time goes, what is different about them
    ($out/flame.html is the flame graph of the slowest span as one file)
  - send it an application's data:    OTEL_EXPORTER_OTLP_ENDPOINT=http://$http   (OTLP/gRPC: $grpc)
  - look at its metrics:              curl http://$metrics/metrics
  - send both signals to backends:    examples/correlation.yaml, sidecar.yaml, gateway.yaml
                                      $profcol --config FILE
TEXT
[ -z "${ONCE:-}" ] || exit 0
echo
echo "profcol keeps running; press Ctrl-C to stop."
wait "$pid"
