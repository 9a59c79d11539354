#!/usr/bin/env bash
# Records what iproute2 sends for each line of testdata/commands.txt, in a network namespace of its own:
#   name | command  ->  testdata/golden.json {name: "hex of the last request's message, with its header"}
# Needs root, iproute2 and strace. The kernel need not have the devices: what is sent is recorded, not what is answered.
set -euo pipefail
cd "$(dirname "$0")/../testdata"
[ -n "${IN_NETNS:-}" ] || exec env IN_NETNS=1 unshare -n bash ../test/record.sh
ip link add lower type ifb && ip link set lower up && ip addr add 192.0.2.1/24 dev lower && ip addr add 2001:db8::1/64 dev lower nodad
ip nexthop add id 11 via 192.0.2.7 dev lower && ip nexthop add id 12 via 192.0.2.8 dev lower
trace=$(mktemp)
trap 'rm -f "$trace"' EXIT
{
  echo '{'
  first=1
  while IFS='|' read -r name command; do
    name=$(echo $name)
    [ -n "$name" ] && [ "${name#\#}" = "$name" ] || continue
    strace -e trace=sendmsg,sendto -e write=all -o "$trace" $command >/dev/null 2>&1 || true
    hex=$(python3 - "$trace" <<'PY'
import re, sys
messages, current = [], None
for line in open(sys.argv[1], errors='replace'):
    dump = re.match(r' \| [0-9a-f]{5}  ((?:[0-9a-f]{2} {1,2})+)', line)
    if dump:
        current = (current or '') + dump.group(1).replace(' ', '')
    else:
        if current: messages.append(current)
        current = None
if current: messages.append(current)
# The last that changes something: its type's lower two bits are NEW (0) or DEL (1).
changing = [m for m in messages if int(m[8:10], 16) % 4 in (0, 1)]
print(changing[-1] if changing else '')
PY
)
    [ -n "$hex" ] || { echo "record.sh: nothing was sent for: $command" >&2; exit 1; }
    [ "$first" = 1 ] || echo ','
    first=0
    printf '  "%s": "%s"' "$name" "$hex"
  done <commands.txt
  echo; echo '}'
} >golden.json.new
mv golden.json.new golden.json
