#!/bin/sh
# Tests of the page of the extension `explore` in headless Chromium, not part of continuous integration:
#   tests/browser/run.sh                  all of the following
#   tests/browser/run.sh person           finds the slowest request, compares it, opens its pprof with Go's tool
#   tests/browser/run.sh stacks           what the page computes from stacks, beside the plain definition
#   tests/browser/run.sh axe              axe-core on every page, light, dark and narrow
#   tests/browser/run.sh hostile          names that are no mere text: scripts, overrides of direction, 1 MB
#   tests/browser/run.sh edges         only spans, circles of parents, clocks that differ
#   tests/browser/run.sh speed            100,000 nodes beside speedscope, 10,000 spans
#   tests/browser/run.sh screenshots      writes docs/explore/*.png (not part of "all")
# It starts profcol with examples/default.yaml and replays the recording of examples/run.sh. Needs node, npm, Go and
# Chromium (`apt-get install chromium`). npm installs puppeteer-core, axe-core and speedscope in build/browser.
#   PROFCOL  the binary                            (build/release/profcol)
#   BASE     the address of a running explore; then nothing is started
set -eu
cd "$(dirname "$0")/../.."
profcol=${PROFCOL:-build/release/profcol}
export MODULES="$PWD/build/browser" OUT="$PWD/build/browser/out"
mkdir -p "$OUT"
cp tests/browser/package.json "$MODULES/"
[ -d "$MODULES/node_modules/axe-core" ] || npm install --prefix "$MODULES" --no-audit --no-fund --silent

if [ -z "${BASE:-}" ]; then
    # Four free ports: explore, OTLP over HTTP and gRPC, metrics.
    set -- "$@" -- $(python3 -c '
import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*[s.getsockname()[1] for s in sockets])')
    tests=
    while [ "$1" != -- ]; do
        tests="$tests $1"
        shift
    done
    export BASE="http://127.0.0.1:$2/"
    "$profcol" --set "extensions.explore.endpoint=127.0.0.1:$2" \
        --set "receivers.otlp.protocols.http.endpoint=127.0.0.1:$3" \
        --set "receivers.otlp.protocols.grpc.endpoint=127.0.0.1:$4" \
        --set "service.telemetry.metrics.readers=[{pull: {exporter: {prometheus: {host: 127.0.0.1, port: $5}}}}]" \
        >/dev/null 2>"$OUT/profcol.log" &
    pid=$!
    trap 'kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true' EXIT
    trap 'exit 1' INT TERM
    for _ in $(seq 40); do
        grep -q 'Everything is ready' "$OUT/profcol.log" && break
        sleep 0.25
    done
    python3 examples/play.py --http "http://127.0.0.1:$3" --speed 20
    sleep 7 # samples wait up to 5 s for their spans
else
    tests=$*
fi

status=0
for test in ${tests:-stacks person axe hostile edges speed}; do
    echo "== $test"
    case $test in
    screenshots)
        node tests/browser/screenshots.mjs docs/explore
        pngquant --force --ext .png --nofs --speed 1 48 docs/explore/*.png || echo "without pngquant they are three times as large"
        ;;
    *) node "tests/browser/$test.mjs" || status=1 ;;
    esac
done
exit $status
