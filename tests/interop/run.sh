#!/usr/bin/env bash
# profcol and the OpenTelemetry Collector in one chain: profcol -> Collector -> profcol, over gRPC and HTTP, in protobuf and JSON,
# with traces and profiles. Needs Go: the Collector is built once, by its own builder, into build/interop. `make interop` calls this.
#   PROFCOL   the binary of profcol    (build/release/profcol)
#   OTELCOL   a Collector that is there already
set -euo pipefail
cd "$(dirname "$0")/../.."
version=v0.162.0
root=$PWD
export PROFCOL_SOURCE=$root PROFCOL_BUILD=$root/build/release PROFCOL=${PROFCOL:-$root/build/release/profcol} PROFCOL_SANITIZER=
export PYTHONDONTWRITEBYTECODE=1

if [ -z "${OTELCOL:-}" ]; then
    OTELCOL=$root/build/interop/$version/otelcol
    if [ ! -x "$OTELCOL" ]; then
        command -v go >/dev/null || { echo "interop: Go is needed to build the Collector" >&2; exit 1; }
        echo "interop: building the Collector $version"
        mkdir -p build/interop
        GOBIN=$root/build/interop/bin go install "go.opentelemetry.io/collector/cmd/builder@$version"
        sed "/gomod/s/VERSION/$version/; s/version: NUMBER/version: ${version#v}/; s|output_path: OUTPUT|output_path: $root/build/interop/$version|" tests/interop/builder.yaml >build/interop/builder.yaml
        build/interop/bin/builder --config build/interop/builder.yaml
    fi
fi
export OTELCOL
[ -x "$PROFCOL" ] || { echo "interop: $PROFCOL is not there; make build" >&2; exit 1; }
[ -x build/venv/bin/python ] || ./setup.sh --tests
exec build/venv/bin/python tests/interop/collector.py "$@"
