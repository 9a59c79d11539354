#!/usr/bin/env bash
# Builds a program of this folder, static: the image has no C library for it.
#   build.sh FILE [PROGRAM]       agent-start when none is given; UNBOUNDED_NATIVE chooses a variant (tools/c-flags.sh)
set -euo pipefail
file=$(realpath -m "${1:?usage: build.sh FILE [PROGRAM]}")
case ${2:-agent-start} in
  agent-start) source=agent-start.c ;;
  pod-start) source=pod-start.c ;;
  *) echo "build.sh: no program $2: there are agent-start and pod-start" >&2; exit 2 ;;
esac
cd "$(dirname "$0")"
. ../../tools/c-flags.sh
command -v musl-gcc >/dev/null || { echo "build.sh: musl-gcc is missing: apt-get install musl-tools" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
out=$(mktemp "$file.XXXXXX")
# linux/capability.h is the kernel's, which musl does not bring.
musl-gcc -std=gnu11 -Os "${compile[@]}" -idirafter "/usr/include/$(uname -m)-linux-gnu" -idirafter /usr/include "$source" \
  "${musl_program[@]}" -o "$out" "${link[@]}"
chmod 755 "$out"; mv "$out" "$file"
