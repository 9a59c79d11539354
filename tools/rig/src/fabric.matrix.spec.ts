import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Case, type CaseName, type CaseReport, CASES, type Report } from './fabric-cases.ts';
import type { Carrier } from './fabric-wire.ts';
import { layoutOf } from './layout.ts';
import { checkout } from './paths.ts';

/** One boot for all: fabric-cases.ts does everything in the machine and tells what it saw. */

const BOOT_SECONDS = 1200;

let report: Report;
let printed = '';
beforeAll(
  async () => {
    const argv = ['-t', String(BOOT_SECONDS), '-m', '3072', '--', 'tools/node', 'tools/rig/src/fabric-cases.ts'];
    const child = spawn('tools/vm/run', argv, { cwd: checkout, stdio: ['ignore', 'pipe', 'inherit'] });
    [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    if (child.exitCode !== 0) throw new Error(`the machine ended with ${child.exitCode}:\n${printed}`);
    report = JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report;
  },
  (BOOT_SECONDS + 60) * 1000,
);

const all = Object.entries(CASES) as [CaseName, Case][];
const seen = (name: CaseName): CaseReport => report.cases[name];
const carrierOf = ({ options, carrier }: Case): string => carrier ?? options.protocol ?? 'Auto';
const named = (of: readonly [CaseName, Case][]) => of.map(([name, tried]) => ({ name, tried }));

test('the kernel is one without tcx', () => {
  expect(report.kernel).toMatch(/^6\.1\./);
});

describe.each(named(all))('$name', ({ name, tried }) => {
  test('every pod reaches every pod and node, by ICMP, UDP and TCP, with packets up to the MTU', () => {
    expect(seen(name).verified, printed).toBe(true);
  });

  test('the links are what was asked for', () => {
    const between = tried.options.between === undefined ? 'WireGuard' : carrierOf(tried);
    const wanted =
      between === carrierOf(tried)
        ? [`s1, s1 - s2, s2: ${between}`]
        : [`s1 - s2: ${between}`, `s1, s2: ${carrierOf(tried)}`];
    expect(seen(name).links).toEqual(wanted);
  });

  test('agents tell of cleartext over external addresses and of what cannot be, and of nothing else', () => {
    const isCleartext = tried.options.between !== undefined && carrierOf(tried) !== 'WireGuard';
    const isOther = tried.carrier !== undefined; // what was asked for cannot be
    expect(seen(name).problems).toEqual([
      ...(isCleartext ? ['CleartextOverExternal'] : []),
      ...(isOther ? ['ProtocolUnsupported'] : []),
    ]);
  });
});

const DEVICES: Readonly<Record<Carrier, Readonly<Record<string, string>>>> = {
  VXLAN: { vxlan0: 'vxlan' },
  GENEVE: { geneve0: 'geneve' },
  IPIP: { ipip0: 'ipip' },
  WireGuard: { wg51821: 'wireguard' },
};

describe.each(named(all.filter(([, { options }]) => options.dataplane !== 'netlink')))('$name', ({ name, tried }) => {
  test('the worker has the kernel’s devices of this protocol only, and a dummy as anchor', () => {
    const carrier = carrierOf(tried) as Carrier;
    expect(seen(name).devices).toEqual({ cbr0: 'bridge', unbounded0: 'dummy', ...DEVICES[carrier] });
  });
});

describe.each(named(all.filter(([, { wire }]) => wire)))('$name', ({ name, tried }) => {
  test.each(['lan', 'wan'] as const)('the %s carries this protocol and nothing else', (segment) => {
    const { matching, others } = seen(name).wire![segment];
    expect(matching).toBeGreaterThan(100);
    expect(others).toBe(0);
  });

  test('inner bytes are seen on the wire unless it is WireGuard', () => {
    const { lan, wan } = seen(name).wire!;
    const isReadable = carrierOf(tried) !== 'WireGuard';
    expect([lan.hasMarker, wan.hasMarker]).toEqual([isReadable, isReadable]);
  });
});

describe.each(named(all.filter(([, { restart }]) => restart)))(
  'agents of a worker and its gateway that are killed and replaced under traffic: $name',
  ({ name }) => {
    test('lose no packet', () => {
      expect(seen(name).restart!.sent).toBeGreaterThan(40);
      expect(seen(name).restart).toMatchObject({ lost: 0 });
    });

    test('swap the one filter of the anchor and keep maps and devices', () => {
      const want = { filters: 1, programSwapped: true, mapsKept: true, devicesKept: true };
      expect(seen(name).restart).toMatchObject(want);
    });
  },
);

test('agents complain of nothing but what was asked for and of peers that are away', () => {
  const expected = /CleartextOverExternal|ProtocolUnsupported|PeersUnhealthy|the health of a peer changed/;
  expect(report.complaints.filter((line) => !expected.test(line))).toEqual([]);
});

test('every case is a layout that tools/lab up --fabric makes', () => {
  for (const [, { options }] of all)
    expect(() => layoutOf({ fabric: true, workers: 1, ip: 'dual', underlay: 'dual', ...options })).not.toThrow();
});
