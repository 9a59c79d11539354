#!/usr/bin/env bash
# Builds build/netlink.node with plain gcc against the headers of the pinned Node. NODE_INCLUDE overrides where they are.
set -euo pipefail
cd "$(dirname "$0")"
case $(uname -m) in x86_64) arch=x64 ;; aarch64) arch=arm64 ;; *) echo "build.sh: $(uname -m) is not supported (x86_64, aarch64 are)" >&2; exit 1 ;; esac
include=${NODE_INCLUDE:-$(cd ../../.. && pwd)/node_modules/node-linux-$arch/include/node}
[ -f "$include/node_api.h" ] || { echo "build.sh: no node_api.h in $include: run tools/setup, or set NODE_INCLUDE" >&2; exit 1; }
command -v gcc >/dev/null || { echo "build.sh: gcc is missing: apt-get install gcc libc6-dev" >&2; exit 1; }
mkdir -p build
# Into a temporary name first: a process that loads the addon at this moment sees the old file or the new, never half.
out=$(mktemp build/netlink.XXXXXX)
gcc -std=gnu11 -O2 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -pthread -isystem "$include" \
  args.c in_netns.c netns.c path_filter.c path_send.c path_socket.c socket.c udp.c module.c -o "$out" -Wl,--as-needed -s
chmod 755 "$out"
mv "$out" build/netlink.node
