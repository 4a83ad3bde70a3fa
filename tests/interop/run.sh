#!/usr/bin/env bash
# profcol among others. `make interop` calls this.
#   run.sh collector    profcol -> OpenTelemetry Collector -> profcol, over gRPC and HTTP, in protobuf and JSON, with traces and profiles.
#                       Needs Go: the Collector is built once, by its own builder, into build/interop
#   run.sh clients      the programs of docs/clients, in five languages, -> profcol; a language without its tools is skipped
#   run.sh sdks         the OpenTelemetry Java agent and the Go, Python and Node SDKs, with traces, metrics and logs, in each protocol that they have, ->
#                       profcol, and -> a Collector: no warning in their logs, and the same arrives. Builds the Collector of compare
#   run.sh compare      profcol beside the Collector: several hundred configurations and requests, the same verdict and answer but for
#                       tests/interop/compare/expected.yaml. Builds a Collector of core and contrib; --help lists options
#   run.sh ottl         conditions and statements of OTTL, written and random, in profcol and in a Collector: the same verdicts and the same spans
#                       afterwards; --help lists options
#   run.sh count        random traces to the connector count with conditions, in profcol and in a Collector: the same counts; --help lists options
#   run.sh samplers     random spans to probabilistic_sampler, in profcol and in a Collector: the same are kept; --help lists options
#   run.sh tail_sampling  random traces to tail_sampling with each policy, in profcol and in a Collector: the same spans are sent; --help lists options
#   run.sh readers      random profiles through the processors that change samples to the exporter pyroscope: go tool pprof and Pyroscope's decoder open
#                       each pprof; --help lists options
#   run.sh redaction    random spans to redaction with random settings, in profcol and in a Collector: the same result; --help lists options
#   run.sh complete URL programs of five languages with Pyroscope's SDKs -> profcol -> the Pyroscope at URL: what each span says it cost is what
#                       Pyroscope has of it, and a service without a profiler is not delayed
#   run.sh threads      a live Java program -> profcol, its profiles joined by thread and time only, compared with what its profiler names; needs a JDK
#                       and Maven; --help lists options
#   run.sh children     a live Java program whose profiler names the local root -> profcol with attribute_children, compared with the functions on the
#                       stacks; needs a JDK and Maven; --help lists options
#   run.sh ebpf PROFILER  live Java and Python programs -> OpenTelemetry's eBPF profiler (the program PROFILER, as root) -> profcol, joined by
#                       thread and time only, compared with the functions on the stacks; needs a JDK and Maven; --help lists options
#                       (--container: the programs have pid namespaces and cgroups of their own, as in containers;
#                       --pools: threads have one name)
#   run.sh              the first two
# More arguments choose tests (ClientsTest.test_go).
#   PROFCOL   the binary of profcol    (build/release/profcol)
#   OTELCOL   a Collector that is there already
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
export PROFCOL_SOURCE=$root PROFCOL_BUILD=$root/build/release PROFCOL=${PROFCOL:-$root/build/release/profcol} PROFCOL_SANITIZER=
export PYTHONDONTWRITEBYTECODE=1

# build_collector VERSION BUILDER_FILE: sets OTELCOL; builds it unless it is there.
build_collector() {
    local version=$1 file=$2 folder
    folder=build/interop/$(basename "$(dirname "$file")")-$version
    OTELCOL=$root/$folder/otelcol
    [ ! -x "$OTELCOL" ] || return 0
    command -v go >/dev/null || { echo "interop: Go is needed to build the Collector" >&2; exit 1; }
    echo "interop: building the Collector $version"
    mkdir -p "$folder"
    GOBIN=$root/$folder/bin go install "go.opentelemetry.io/collector/cmd/builder@$version"
    sed "/gomod/s/VERSION/$version/; s/version: NUMBER/version: ${version#v}/; s|output_path: OUTPUT|output_path: $root/$folder|" "$file" >"$folder/builder.yaml"
    "$folder/bin/builder" --config "$folder/builder.yaml"
}

[ -x "$PROFCOL" ] || { echo "interop: $PROFCOL is not there; make build" >&2; exit 1; }
[ -x build/venv/bin/python ] || ./setup.sh --tests
case "${1:-both}" in
collector)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.162.0 tests/interop/builder.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/collector.py "$@"
    ;;
compare)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/compare "$@"
    ;;
clients)
    shift
    exec build/venv/bin/python tests/interop/clients.py "$@"
    ;;
ottl)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    cmake --build --preset release --target ottl_verdicts ottl_results >/dev/null
    export OTELCOL OTTL_VERDICTS=${OTTL_VERDICTS:-$root/build/release/tests/ottl_verdicts} OTTL_RESULTS=${OTTL_RESULTS:-$root/build/release/tests/ottl_results}
    exec build/venv/bin/python tests/interop/ottl "$@"
    ;;
count)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/count "$@"
    ;;
samplers)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/samplers "$@"
    ;;
tail_sampling)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/tail_sampling "$@"
    ;;
readers)
    shift
    exec build/venv/bin/python tests/interop/readers "$@"
    ;;
redaction)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/redaction "$@"
    ;;
complete)
    shift
    [ $# -gt 0 ] || { echo "usage: $0 complete http://HOST:PORT [TEST...]: needs a running Pyroscope" >&2; exit 2; }
    export PYROSCOPE_URL=$1
    shift
    exec build/venv/bin/python tests/interop/complete "$@"
    ;;
sdks)
    shift
    [ -n "${OTELCOL:-}" ] || build_collector v0.158.0 tests/interop/compare/collector.yaml
    export OTELCOL
    exec build/venv/bin/python tests/interop/sdks "$@"
    ;;
threads)
    shift
    exec build/venv/bin/python tests/interop/threads "$@"
    ;;
children)
    shift
    exec build/venv/bin/python tests/interop/children "$@"
    ;;
ebpf)
    shift
    exec build/venv/bin/python tests/interop/ebpf "$@"
    ;;
both)
    "$0" collector
    "$0" clients
    ;;
*)
    echo "usage: $0 [collector|clients|sdks [TEST...]|complete URL [TEST...]|compare [--help]|ottl [--help]|count [--help]|samplers [--help]|tail_sampling [--help]|readers [--help]|redaction [--help]|threads [--help]|children [--help]|ebpf PROFILER [--help]]" >&2
    exit 2
    ;;
esac
