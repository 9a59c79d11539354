#!/usr/bin/env bash
# Builds build/unbounded-cni, static: it is copied to hosts whatever their C library.
set -euo pipefail
cd "$(dirname "$0")"
command -v musl-gcc >/dev/null || { echo "build.sh: musl-gcc is missing: apt-get install musl-tools" >&2; exit 1; }
mkdir -p build
out=$(mktemp build/cni.XXXXXX)
musl-gcc -std=gnu11 -Os -Wall -Wextra -Werror -static -s src/*.c -o "$out"
chmod 755 "$out"; mv "$out" build/unbounded-cni
