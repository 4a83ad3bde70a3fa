#!/usr/bin/env bash
# Recorded requests through profcol under valgrind: no error, and no leak after SIGTERM has drained it.
#   tests/e2e/leaks.sh [CAPTURE...]      default: ebpf-profiler-obi-links python-http-json pprof-to-otlp
#   PROFCOL   the binary, without a sanitizer    (build/release/profcol)
set -euo pipefail
cd "$(dirname "$0")/../.."
profcol=${PROFCOL:-build/release/profcol}
command -v valgrind >/dev/null || { echo "leaks: valgrind is not there; ./setup.sh --dev" >&2; exit 1; }
[ -x build/venv/bin/python ] || ./setup.sh --tests
export PROFCOL_SOURCE=$PWD PROFCOL_BINARY=$profcol PYTHONDONTWRITEBYTECODE=1
exec build/venv/bin/python tests/e2e/leaks.py "$@"
