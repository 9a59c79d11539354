import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Protocol } from './nodes.ts';
import type { Report } from './tunnels.ts';

/** One boot for all: tunnels.ts does everything in the machine and tells what it saw. */

const repository = join(import.meta.dirname, '../../..');
const BOOT_SECONDS = 1500;

let report: Report;
beforeAll(
  async () => {
    const argv = ['-t', String(BOOT_SECONDS), '-m', '3072', '--', 'tools/node', 'tools/vm/src/tunnels.ts'];
    const child = spawn('tools/vm/run', argv, { cwd: repository, stdio: ['ignore', 'pipe', 'inherit'] });
    const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    if (child.exitCode !== 0) throw new Error(`the machine ended with ${child.exitCode}:\n${printed}`);
    report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
  },
  (BOOT_SECONDS + 60) * 1000,
);

const devices: Readonly<Record<Protocol, Readonly<Record<string, string>>>> = {
  VXLAN: { vxlan0: 'vxlan' },
  GENEVE: { geneve0: 'geneve' },
  IPIP: { ipip0: 'ipip' },
  WireGuard: { wg51821: 'wireguard' },
};

test('the kernel is one without tcx', () => {
  expect(report.kernel).toMatch(/^6\.1\./);
});

describe.each(['VXLAN', 'GENEVE', 'IPIP', 'WireGuard'] as const)('over %s', (protocol) => {
  const seen = () => report.protocols[protocol];

  test('pods and nodes reach pods in their site and in the other, with packets up to the MTU', () => {
    expect(seen().reached).toHaveLength(6);
    for (const reached of seen().reached) expect(reached).toEqual({ path: reached.path, small: 3, full: 3 });
  });

  test('a TCP stream arrives with the right checksum', () => {
    expect(seen().streamedMiB).toBe(2);
  });

  test.each(['lan1', 'wan'] as const)('%s carries this protocol and nothing else', (segment) => {
    const { matching, others } = seen().wire[segment];
    expect(matching).toBeGreaterThan(100);
    expect(others).toBe(0);
  });

  test('inner bytes are seen on the wire unless it is WireGuard', () => {
    const isReadable = protocol !== 'WireGuard';
    expect([seen().wire.lan1.hasMarker, seen().wire.wan.hasMarker]).toEqual([isReadable, isReadable]);
  });

  test('the node has the devices of this protocol only, and a dummy as anchor', () => {
    expect(seen().devices).toEqual({ cbr0: 'bridge', unbounded0: 'dummy', ...devices[protocol] });
  });
});

describe.each(['GENEVE', 'WireGuard'] as const)(
  'agents of a worker and its gateway that are killed and replaced under %s traffic',
  (protocol) => {
    const restart = () => report.restarts[protocol]!;

    test('lose no packet', () => {
      expect(restart().sent).toBeGreaterThan(40);
      expect(restart()).toMatchObject({ lost: 0 });
    });

    test('swap the one filter of the anchor and keep maps and devices', () => {
      expect(restart()).toMatchObject({ filters: 1, programSwapped: true, mapsKept: true, devicesKept: true });
    });
  },
);

test('agents complain of nothing but cleartext over external addresses, where it was asked for', () => {
  const complaints = Object.values(report.complaints).flat();
  // While an agent is away its peers say so.
  const expected = /CleartextOverExternal|PeersUnhealthy|the health of a peer changed/;
  expect(complaints.filter((line) => !expected.test(line))).toEqual([]);
});
