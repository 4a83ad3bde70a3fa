#!/usr/bin/env bash
# Installs what building profcol needs, from Debian's or Ubuntu's packages.
#   ./setup.sh           what the build needs, and the demonstration of make run
#   ./setup.sh --tests   also what the tests need, with a Python environment in build/venv
#   ./setup.sh --dev     also the formatter, the linter, the fuzzer's compiler, valgrind, ccache
# What is there already is left alone; when nothing is missing, nothing is done.
set -euo pipefail
cd "$(dirname "$0")"

# a|b: either one will do, the first that the distribution has is taken.
build=(gcc libc6-dev make cmake ninja-build pkg-config protobuf-c-compiler
    libuv1-dev libnghttp2-dev libprotobuf-c-dev libjansson-dev libyaml-dev libssl-dev
    zlib1g-dev libdeflate-dev libzstd-dev libsnappy-dev liblz4-dev libxxhash-dev libpcre2-dev libcrypt-dev libelf-dev
    "libllhttp-dev|libhttp-parser-dev" python3)
tests=(libcmocka-dev protobuf-compiler python3-venv openssl libseccomp2)
dev=(git ccache valgrind gcovr "clang-14|clang" "clang-format-14|clang-format" "clang-tidy-14|clang-tidy"
    "libclang-rt-14-dev|libclang-rt-dev")

wanted=("${build[@]}")
with_venv=no
for option in "$@"; do
    case "$option" in
    --tests) wanted+=("${tests[@]}") with_venv=yes ;;
    --dev) wanted+=("${dev[@]}") ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
    esac
done

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2 && exit 1; }
installed() { dpkg-query -W -f '${Status}\n' "$1" 2>/dev/null | grep -q 'ok installed'; }

missing=()
for names in "${wanted[@]}"; do
    found=no
    for name in ${names//|/ }; do
        installed "$name" && found=yes
    done
    [ "$found" = yes ] || missing+=("$names")
done

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "neither root nor sudo here; have an administrator install: ${missing[*]}"
    fi
}

if [ "${#missing[@]}" != 0 ]; then
    command -v apt-get >/dev/null ||
        die "only Debian and Ubuntu are known here; install your system's packages of: ${missing[*]}"
    say "installing ${missing[*]}"
    as_root apt-get update -q
    packages=()
    for names in "${missing[@]}"; do
        chosen=
        for name in ${names//|/ }; do
            if [ -z "$chosen" ] && apt-cache show "$name" >/dev/null 2>&1; then
                chosen=$name
            fi
        done
        [ -n "$chosen" ] || die "this distribution has no package $names"
        packages+=("$chosen")
    done
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -qy --no-install-recommends "${packages[@]}"
fi

if [ "$with_venv" = yes ] && ! cmp -s tests/requirements.txt build/venv/installed.txt; then
    say "making build/venv"
    rm -rf build/venv
    /usr/bin/python3 -m venv build/venv
    build/venv/bin/pip install -q --disable-pip-version-check -r tests/requirements.txt
    cp tests/requirements.txt build/venv/installed.txt
fi
