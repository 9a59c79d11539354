/**
 * Runs inside the virtual machine: one lab without Kubernetes, whose objects are changed from case to case. Prints what
 * was seen as JSON in its last line; expectations.ts says what it has to be.
 *
 *     tools/vm/run -t 600 -m 3072 -- tools/node tools/rig/src/scenario/bare/cases.ts IPIP 'GENEVE over bad links'
 */
import { readFileSync } from 'node:fs';
import { agentLog, stopAgent } from '../../apps/agents.ts';
import { run } from '../../machine/command.ts';
import { logTail } from '../../machine/daemon.ts';
import { down } from '../../substrate/down.ts';
import { ourDevices, restartUnderTraffic, type RestartReport } from './restart.ts';
import { waitForPaths } from '../../substrate/bare/proven-paths.ts';
import { type Carrier, lookAtWire, type Wire } from './wire.ts';
import { type LabLayout, layoutOf } from '../../layout/layout.ts';
import { describeLinks, readPlans } from '../../checks/links.ts';
import { impair } from '../../underlay/netem.ts';
import type { LabOptions } from '../../layout/options.ts';
import { logFile } from '../../machine/paths.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { timeUntil } from '../scenario.ts';
import { saveLayout } from '../../substrate/steps.ts';
import { NODE_AGENT } from '../../apps/tokens.ts';
import { up } from '../../substrate/up.ts';
import { verify } from '../../cli/verify.ts';
import { probePods } from '../../substrate/probes.ts';
import { startAgent } from '../../substrate/agents.ts';
import { readReports, writeObjects } from '../../substrate/bare/objects.ts';

export interface Case {
  readonly options: Partial<LabOptions>;
  /** What carries it, where that is not what the options ask for. */
  readonly carrier?: Carrier;
  /** Packets are captured. */
  readonly wire?: boolean;
  /** Agents are replaced under traffic. */
  readonly restart?: boolean;
}

const over = (protocol: Carrier, more: Partial<LabOptions> = {}): Partial<LabOptions> => ({
  protocol,
  between: protocol,
  ...more,
});
const OVER_IPV6 = { ip: 'ipv4', underlay: 'ipv6' } as const;
const ONLY_IPV4 = { ip: 'ipv4', underlay: 'ipv4' } as const;
const BAD_LINKS = { ...ONLY_IPV4, delayMs: 20, lossPercent: 1, reorderPercent: 5 };
const NETLINK = { dataplane: 'netlink' } as const;

/** In the order in which they are tried: what needs the agents restarted stands together. */
export const CASES = {
  'GENEVE, both families': { options: over('GENEVE'), wire: true },
  'GENEVE, agents replaced under traffic': { options: over('GENEVE'), restart: true },
  'GENEVE over bad links': { options: over('GENEVE', BAD_LINKS) },
  'WireGuard over bad links': { options: over('WireGuard', BAD_LINKS) },
  'WireGuard, both families': { options: over('WireGuard'), wire: true, restart: true },
  IPIP: { options: over('IPIP', ONLY_IPV4), wire: true },
  'IPv4 pods over IPv6, WireGuard': { options: over('WireGuard', OVER_IPV6), wire: true },
  'IPv4 pods over IPv6, GENEVE': { options: { protocol: 'GENEVE', ...OVER_IPV6 } },
  'IPv4 pods over IPv6, VXLAN': { options: { protocol: 'VXLAN', ...OVER_IPV6 } },
  'IPv4 pods over IPv6, IPIP, which cannot be': { options: { protocol: 'IPIP', ...OVER_IPV6 }, carrier: 'VXLAN' },
  'IPIP by kernel routes': { options: over('IPIP', { ...ONLY_IPV4, ...NETLINK }), wire: true },
  'VXLAN by kernel routes': { options: over('VXLAN', NETLINK) },
  'GENEVE by kernel routes': { options: over('GENEVE', NETLINK), wire: true },
  'WireGuard by kernel routes': { options: over('WireGuard', NETLINK) },
} as const satisfies Record<string, Case>;
export type CaseName = keyof typeof CASES;

export interface CaseReport {
  readonly verified: boolean;
  /** Lines of `tools/lab verify` about what carries the links. */
  readonly links: readonly string[];
  /** Reasons of the problems in all plans. */
  readonly problems: readonly string[];
  /** Our devices on the first worker, with their kinds. */
  readonly devices: Readonly<Record<string, string>>;
  readonly wire?: Wire;
  readonly restart?: RestartReport;
}

export interface Report {
  readonly kernel: string;
  readonly cases: Readonly<Partial<Record<CaseName, CaseReport>>>;
  readonly complaints: readonly string[];
}

const BASE = { fabric: true, workers: 1, ip: 'dual', underlay: 'dual' } as const;
const SETTLE_MS = 180_000;
const say = (text: string): void => console.log(`[${(performance.now() / 1000).toFixed(1)}] ${text}`);

const KINDS: Readonly<Record<string, string>> = {
  GENEVE: 'geneve',
  VXLAN: 'vxlan',
  IPIP: 'ipip',
  WireGuard: 'wireguard',
};

const isSettled = (layout: LabLayout, carrier: Carrier): boolean =>
  layout.nodes
    .filter(({ role }) => role === 'worker')
    .every(({ name }) => {
      const anchor = layout.options.dataplane === 'ebpf' ? ['dummy'] : [];
      const kinds = new Set(Object.values(ourDevices(name)));
      const wanted = new Set(['bridge', 'tun', ...anchor, KINDS[carrier]!]); // a TUN for echoes
      return kinds.symmetricDifference(wanted).size === 0;
    });

/** The same with the wires, and the addresses of nodes, that all cases have. */
const onAllWires = ({ options }: LabLayout): LabLayout => layoutOf({ ...options, underlay: BASE.underlay });

/** Makes the running lab another: its agents get other objects, and are replaced only for another data path. */
const change = async (from: LabLayout, to: LabLayout, carrier: Carrier): Promise<void> => {
  saveLayout(to);
  writeObjects(to, readReports(to));
  if (from.options.dataplane !== to.options.dataplane) {
    await Promise.all(to.nodes.map(({ name }) => stopAgent(name, NODE_AGENT)));
    // The next cases have the same agents: they answer at the addresses of all.
    await Promise.all(onAllWires(to).nodes.map((node) => startAgent(to, node, NODE_AGENT)));
  }
  impair(to);
  await timeUntil(`every node has what ${carrier} needs, and nothing else`, () => isSettled(to, carrier), SETTLE_MS);
  await waitForPaths(to);
};

const podOf = (pods: readonly Pod[], node: string): Pod => pods.find((pod) => pod.node === node)!;

const tryCase = async (layout: LabLayout, { wire, restart, ...rest }: Case): Promise<CaseReport> => {
  const carrier = rest.carrier ?? (layout.options.protocol as Carrier);
  const pods = await probePods(layout);
  const ends = [podOf(pods, 's1-w1'), podOf(pods, 's2-w1')] as const;
  const verified = await verify(layout);
  return {
    verified,
    links: describeLinks(layout, new Set(Object.keys(KINDS))),
    problems: [...new Set(readPlans(layout).flatMap(({ problems }) => problems.map(({ reason }) => reason)))].sort(),
    devices: ourDevices('s1-w1'),
    ...(wire && { wire: await lookAtWire(layout, { from: ends[0], to: ends[1], carrier }) }),
    ...(restart && { restart: await restartUnderTraffic(layout, ends, ['s1-w1', 's1-g1']) }),
  };
};

/** Warnings and errors of an agent's log. */
const complaintsOf = (node: string): string[] =>
  readFileSync(logFile(agentLog(node, NODE_AGENT)), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !/"level":"(trace|debug|info)"/.test(line))
    .map((line) => `${node}: ${line}`);

/** @param only names of cases; none: all */
const main = async (only: readonly string[]): Promise<void> => {
  const reports: Record<string, CaseReport> = {};
  let before: LabLayout | undefined;
  for (const [name, tried] of Object.entries(CASES) as [string, Case][]) {
    if (only.length > 0 && !only.includes(name)) continue;
    const layout = layoutOf({ ...BASE, ...tried.options });
    say(name);
    // Whatever case is first: the wires that it lays are those of all.
    const laid: LabLayout = before ?? onAllWires(layout);
    if (!before) await up(laid);
    await change(laid, layout, tried.carrier ?? (layout.options.protocol as Carrier));
    say('everything is in place');
    reports[name] = await tryCase(layout, tried);
    say(JSON.stringify(reports[name]));
    before = layout;
  }
  const complaints = (before?.nodes ?? []).flatMap(({ name }) => complaintsOf(name));
  await down();
  console.log(JSON.stringify({ kernel: run(['uname', '-r']).trim(), cases: reports, complaints }));
};

if (import.meta.main) {
  // An emulated processor answers late, and a path that is slow is not broken.
  process.env['PROBE_CHECK_TIME'] ??= '15s';
  try {
    await main(process.argv.slice(2));
  } catch (error) {
    for (const { name } of layoutOf(BASE).nodes) console.log(`${name}: ${logTail(agentLog(name, NODE_AGENT), 12)}`);
    throw error;
  }
}
