#!/usr/bin/env bash
# Builds build/unbounded-cni, static: it is copied to hosts whatever their C library.
#   build.sh [FILE]     another file instead; UNBOUNDED_NATIVE chooses a variant (tools/c-flags.sh)
set -euo pipefail
file=$(realpath -m "${1:-$(dirname "$0")/build/unbounded-cni}")
cd "$(dirname "$0")"
. ../../tools/c-flags.sh
command -v musl-gcc >/dev/null || { echo "build.sh: musl-gcc is missing: apt-get install musl-tools" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
out=$(mktemp "$file.XXXXXX")
# linux/rtnetlink.h is the kernel's, which musl does not bring.
musl-gcc -std=gnu11 -Os "${compile[@]}" -idirafter "/usr/include/$(uname -m)-linux-gnu" -idirafter /usr/include \
  src/main.c src/request.c src/request_layout.c src/answer_layout.c src/interfaces.c "${musl_program[@]}" -o "$out" "${link[@]}"
chmod 755 "$out"; mv "$out" "$file"
