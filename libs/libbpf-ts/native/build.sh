#!/usr/bin/env bash
# Builds build/libbpf.node with plain gcc against the distribution's libbpf and the headers of the pinned Node.
# NODE_INCLUDE overrides where those are.
set -euo pipefail
cd "$(dirname "$0")"
case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) echo "build.sh: $(uname -m) is not supported (x86_64, aarch64 are)" >&2; exit 1 ;; esac
include=${NODE_INCLUDE:-$(cd ../../.. && pwd)/node_modules/node-linux-$arch/include/node}
shared=../../netlink/native # argument checks and work in another namespace
[ -f "$include/node_api.h" ] || { echo "build.sh: no node_api.h in $include: run tools/setup, or set NODE_INCLUDE" >&2; exit 1; }
command -v gcc >/dev/null || { echo "build.sh: gcc is missing: apt-get install gcc libc6-dev" >&2; exit 1; }
[ -f /usr/include/bpf/libbpf.h ] || { echo "build.sh: libbpf's headers are missing: apt-get install libbpf-dev" >&2; exit 1; }
mkdir -p build
out=$(mktemp build/libbpf.XXXXXX)
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -pthread -isystem "$include" -I "$shared" \
  "$shared/args.c" "$shared/in_netns.c" log.c handle.c map.c object.c program.c ring.c module.c -o "$out" -Wl,--as-needed -lbpf -s
chmod 755 "$out"
mv "$out" build/libbpf.node
