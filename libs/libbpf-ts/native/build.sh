#!/usr/bin/env bash
# Builds build/libbpf.node with plain gcc against the distribution's libbpf and the headers of the pinned Node.
# NODE_INCLUDE overrides where those are.
#   build.sh [FILE]     another file instead; UNBOUNDED_NATIVE chooses a variant (tools/c-flags.sh)
set -euo pipefail
file=$(realpath -m "${1:-$(dirname "$0")/build/libbpf.node}")
cd "$(dirname "$0")"
. ../../../tools/c-flags.sh
include=${NODE_INCLUDE:-$(cd ../../.. && pwd)/node_modules/node-linux-$node_arch/include/node}
shared=../../netlink/native # argument checks and work in another namespace
[ -f "$include/node_api.h" ] || { echo "build.sh: no node_api.h in $include: run tools/setup, or set NODE_INCLUDE" >&2; exit 1; }
command -v gcc >/dev/null || { echo "build.sh: gcc is missing: apt-get install gcc libc6-dev" >&2; exit 1; }
[ -f /usr/include/bpf/libbpf.h ] || { echo "build.sh: libbpf's headers are missing: apt-get install libbpf-dev" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
out=$(mktemp "$file.XXXXXX")
gcc -std=gnu11 -O2 "${compile[@]}" -shared -fPIC -fvisibility=hidden -pthread -isystem "$include" -I "$shared" \
  "$shared/args.c" "$shared/in_netns.c" log.c handle.c map.c object.c program.c records.c ring.c module.c -o "$out" "${link[@]}" -lbpf
chmod 755 "$out"
mv "$out" "$file"
