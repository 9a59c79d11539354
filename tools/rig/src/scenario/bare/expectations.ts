import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Case, type CaseName, type CaseReport, CASES, type Report } from './cases.ts';
import type { Carrier } from './wire.ts';
import { checkout } from '../../machine/paths.ts';

/** What is expected of cases in the virtual machine. One boot for all: cases.ts does everything there. */

/** Ends a machine that hangs. An emulated one needs a minute for each as a rule, but has as much of the processors as others leave it. */
const SECONDS_PER_CASE = 240;
const BOOT_SECONDS = 900;

const DEVICES: Readonly<Record<Carrier, Readonly<Record<string, string>>>> = {
  VXLAN: { vxlan0: 'vxlan' },
  GENEVE: { geneve0: 'geneve' },
  IPIP: { ipip0: 'ipip' },
  WireGuard: { wg51821: 'wireguard' },
};

/**
 * Warnings that a case asks for, and peers that are away while agents are replaced. An agent that starts fast looks before the lab has
 * written any objects, which need the agents' keys: then its Node has no address. And an emulated processor needs more than ten seconds
 * from the port of a pod, which the bridge plugin makes, to the plugin that registers the pod, and for its first ADD more than a section has to
 * answer: such an ADD is refused, undone and repeated. A real-time thread takes more of it than its share, and loses the priority for a while.
 */
const EXPECTED_WARNINGS =
  /CleartextOverExternal|ProtocolUnsupported|PeersUnhealthy|UnknownBridgePort|the health of a peer changed|NotForwarding|echoes through a gateway|a hook goes on after its time|it took \d+ % of a processor|NodeNotListed.* InternalIP of the node \(\),/;

/** Of the eBPF data path. */
const OF_EVERY_PLAN = { cbr0: 'bridge', unbounded0: 'dummy', 'unbounded-echo': 'tun' };

const carrierOf = ({ options, carrier }: Case): string => carrier ?? options.protocol ?? 'Auto';

/** Runs the cases in the machine. @throws Error with what it printed, when it did not come to its end */
const runCases = async (names: readonly CaseName[]): Promise<{ report: Report; printed: string }> => {
  const seconds = BOOT_SECONDS + names.length * SECONDS_PER_CASE;
  const argv = [
    '-t',
    String(seconds),
    '-m',
    '3072',
    '--',
    'tools/node',
    'tools/rig/src/scenario/bare/cases.ts',
    ...names,
  ];
  const child = spawn('tools/vm/run', argv, { cwd: checkout, stdio: ['ignore', 'pipe', 'inherit'] });
  const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (child.exitCode !== 0) throw new Error(`the machine ended with ${child.exitCode}:\n${printed}`);
  return { report: JSON.parse(printed.trimEnd().split('\n').at(-1)!) as Report, printed };
};

/** Defines the tests of these cases. */
export const expectCases = (names: readonly CaseName[]): void => {
  const all = names.map((name): { name: CaseName; tried: Case } => ({ name, tried: CASES[name] }));
  let report: Report;
  let printed = '';
  beforeAll(
    async () => {
      ({ report, printed } = await runCases(names));
    },
    (BOOT_SECONDS + names.length * SECONDS_PER_CASE + 60) * 1000,
  );
  const seen = (name: CaseName): CaseReport => report.cases[name]!;

  test('the kernel is one without tcx', () => {
    expect(report.kernel).toMatch(/^6\.1\./);
  });

  describe.each(all)('$name', ({ name, tried }) => {
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

  describe.each(all.filter(({ tried }) => tried.options.dataplane !== 'netlink'))('$name', ({ name, tried }) => {
    test('the worker has the kernel’s devices of this protocol only, a dummy as anchor and a TUN for echoes', () => {
      const carrier = carrierOf(tried) as Carrier;
      expect(seen(name).devices).toEqual({ ...OF_EVERY_PLAN, ...DEVICES[carrier] });
    });
  });

  describe.each(all.filter(({ tried }) => tried.wire))('$name', ({ name, tried }) => {
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

  describe.each(all.filter(({ tried }) => tried.restart))(
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
    expect(report.complaints.filter((line) => !EXPECTED_WARNINGS.test(line))).toEqual([]);
  });
};
