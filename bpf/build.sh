#!/usr/bin/env bash
# Compiles the eBPF programs into build/*.bpf.o. Needs clang, llvm-strip and libbpf's headers (libbpf-dev).
#   build.sh [FOLDER]     another folder instead of build; NEXT_LAYOUT=1 makes the stand-in for the next layout of the maps
set -euo pipefail
cd "$(dirname "$0")"
command -v clang >/dev/null || { echo "build.sh: clang is missing: apt-get install clang llvm libbpf-dev" >&2; exit 1; }
folder=${1:-build}
mkdir -p "$folder"
compile() { # SOURCE OBJECT [FLAG...]
  local source=$1 out=$2; shift 2
  # The host's asm/ headers stand in a folder of its architecture; the programs themselves are the same everywhere.
  clang -O2 -g -target bpf -mcpu=v3 ${NEXT_LAYOUT:+-DNEXT_LAYOUT} "$@" -Wall -Wextra -Werror -Wno-sign-compare \
    -Wno-missing-field-initializers -I"/usr/include/$(uname -m)-linux-gnu" -c "$source" -o "$out"
}
made=$(mktemp -d "$folder/objects.XXXXXX")
trap 'rm -rf "$made"' EXIT
for source in *.bpf.c; do compile "$source" "$made/${source%.c}.o"; done
# For kernels without the types or the function by which a program sees where a checksum is to be filled in (before Linux 6.2).
compile unbounded_l2.bpf.c "$made/unbounded_l2_plain.bpf.o" -DNO_KERNEL_TYPES
llvm-strip -g "$made"/*.o
chmod 644 "$made"/*.o
# All or none, and last the one by whose time tools/setup sees whether all are up to date.
last=$made/unbounded_encap.bpf.o
for object in "$made"/*.o; do [ "$object" = "$last" ] || mv "$object" "$folder/"; done
mv "$last" "$folder/"
