#!/usr/bin/env bash
# Builds build/netlink.node with plain gcc against the headers of the pinned Node. NODE_INCLUDE overrides where they are.
#   build.sh [FILE]     another file instead; UNBOUNDED_NATIVE chooses a variant (tools/c-flags.sh)
set -euo pipefail
file=$(realpath -m "${1:-$(dirname "$0")/build/netlink.node}")
cd "$(dirname "$0")"
. ../../../tools/c-flags.sh
include=${NODE_INCLUDE:-$(cd ../../.. && pwd)/node_modules/node-linux-$node_arch/include/node}
[ -f "$include/node_api.h" ] || { echo "build.sh: no node_api.h in $include: run tools/setup, or set NODE_INCLUDE" >&2; exit 1; }
command -v gcc >/dev/null || { echo "build.sh: gcc is missing: apt-get install gcc libc6-dev" >&2; exit 1; }
mkdir -p "$(dirname "$file")"
# Into a temporary name first: a process that loads the addon at this moment sees the old file or the new, never half.
out=$(mktemp "$file.XXXXXX")
gcc -std=gnu11 -O2 "${compile[@]}" -shared -fPIC -fvisibility=hidden -pthread -isystem "$include" \
  args.c in_netns.c netns.c packet.c path_filter.c path_record.c path_send.c path_socket.c reader.c socket.c tun.c udp.c module.c -o "$out" "${link[@]}"
chmod 755 "$out"
mv "$out" "$file"
