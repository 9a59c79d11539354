import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { binary } from '../machine/paths.ts';
import type { FlowReport } from '../scenario/scenario.ts';

/** What a flow of the probe calls a gap, with real stops of its two ends on the loopback of a namespace of their own. */

/** Longer than anything else that holds up one of its ends. */
const STOP_MS = 2000;

/** A flow of 100 a second for four, while one of its ends is stopped for a while. */
const flowWhile = (stopped: 'sender' | 'server'): FlowReport => {
  const script = `set -e
ip link set lo up
"$0" serve >/dev/null 2>&1 & server=$!
trap 'kill $server' EXIT
until grep -qs ":$(printf %04X 9000) " /proc/net/udp /proc/net/udp6; do sleep 0.05; done
"$0" flow 127.0.0.1:9000 100 4 & sender=$!
until [ "$(awk '/^Udp: [0-9]/ { print $2 }' /proc/net/snmp)" -gt 20 ]; do sleep 0.05; done # datagrams that came in
kill -STOP $${stopped}
sleep ${STOP_MS / 1000}
kill -CONT $${stopped}
wait $sender`;
  const printed = execFileSync(
    'unshare',
    ['--net', '--pid', '--fork', '--kill-child', 'sh', '-c', script, binary('probe')],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 30_000,
    },
  );
  return JSON.parse(printed) as FlowReport;
};

test('a flow whose server answers late has a gap, and has lost nothing', () => {
  const { lost, largestGapMillis } = flowWhile('server');
  expect(lost).toBe(0);
  expect(largestGapMillis).toBeGreaterThan(STOP_MS * 0.9);
});

test('a flow whose sender had to wait has no gap: no answer was due', () => {
  const { lost, sent, largestGapMillis } = flowWhile('sender');
  expect({ lost, sent }).toEqual({ lost: 0, sent: 400 });
  expect(largestGapMillis).toBeLessThan(STOP_MS / 2);
});
