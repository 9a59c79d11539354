/**
 * A restart after which the kernel refuses connectivity's table, under a flow of 1,000 packets a second each way between pods of two
 * nodes: packets with another's source come in meanwhile, and packets for the overlay find no route. In namespaces of its own
 * (refused-table.kernel.spec.ts), with the data path as argument; prints what it saw as JSON.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { HostServices } from '@unbounded/host';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import type { AgentConfig } from '../agent.config.ts';
import type { FlowCount, FlowSettings } from '../connectivity/keys/flow.scenario.ts';
import type { AgentReport } from '../world/reporter.port.ts';
import { makeNode, NAMESPACES, run, startAgent, until, writeObjects } from './agent-node.testdata.ts';
import { example } from './example-section.testdata.ts';
import { sectionsOf } from './sections.ts';
import { printReport } from '../printed-report.testdata.ts';

export interface Report {
  readonly flow: readonly FlowCount[];
  /** Connectivity's table before the restart, and while the kernel refuses the next one. */
  readonly tables: readonly [string, string];
  /** While it refuses it. */
  readonly reasons: readonly string[];
  readonly hasOtherTable: boolean;
  /** On the LAN, with an address of the overlay and no tunnel around it: sent during the restart; and those that were seen there. */
  readonly leaks: { readonly sent: number; readonly seen: number };
  /** Out of the tunnel of the other node, with the address of a pod of neither: sent meanwhile; and those that the pod got. */
  readonly forged: { readonly sent: number; readonly got: number };
}

const dataplane = process.argv[2] as 'ebpf' | 'netlink';
const PODS = ['100.65.30.9', '100.65.31.9'] as const;
/** Of a pod of the other site. */
const FAR = '100.66.20.9';
const folder = mkdtempSync(join(tmpdir(), 'refused-'));

/** The other node, x1: the real program, at the other end of the wire. */
const startPeer = () => {
  const wait = 'while [ ! -e /sys/class/net/eth0 ]; do sleep 0.05; done; exec "$@"';
  const program = new URL('../main.ts', import.meta.url).pathname;
  const flags = ['--node-name', 'x1', '--dataplane', dataplane, '--manifests-dir', folder, '--health-port', '0'];
  const [shell, node] = [NAMESPACES.slice(0, 7), NAMESPACES.slice(7)];
  const argv = [...shell, 'sh', '-c', wait, 'x1', ...node, program, ...flags];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', ...argv], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const within = (...command: string[]): string => run('nsenter', `--net=/proc/${child.pid}/ns/net`, ...command);
  return { child, within };
};

type Within = (...argv: string[]) => string;

const plugPod = (within: Within, address: string): Netns => {
  const pod = createNetns();
  within('ip', 'link', 'add', 'veth9', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pod.path);
  within('ip', 'link', 'set', 'veth9', 'master', 'cbr0', 'up');
  const inside = (...argv: string[]): string => run('nsenter', `--net=${pod.path}`, ...argv);
  inside('ip', 'addr', 'add', `${address}/24`, 'dev', 'eth0');
  for (const device of ['lo', 'eth0']) inside('ip', 'link', 'set', device, 'up');
  inside('ip', 'route', 'add', 'default', 'via', address.replace(/\d+$/, '1'));
  return pod;
};

/** Counts packets that match, before anything else sees them. */
const countIn = (within: Within, match: string): (() => number) => {
  const chain = 'add chain inet seen c { type filter hook prerouting priority -400; }';
  within('nft', `add table inet seen; ${chain}; add rule inet seen c ${match} counter`);
  return () => Number(/packets (\d+)/.exec(within('nft', 'list', 'table', 'inet', 'seen'))?.[1]);
};

/** Pings that nobody answers; returns their number when it is asked to end. */
const pings = (argv: readonly string[], target: string, ...options: readonly string[]) => {
  const command = [...argv, 'ping', '-i', '0.02', ...options, target];
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...command], { stdio: ['ignore', 'pipe', 'ignore'] });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  return async (): Promise<number> => {
    child.kill('SIGINT');
    await once(child, 'close');
    return Number(/(\d+) packets transmitted/.exec(printed)?.[1]);
  };
};

const refusing = (nft: Nftables): Nftables => ({
  ...nft,
  // The next version's rules are others, and the kernel has not the module for them.
  matches: async (table) => table.name !== 'unbounded' && (await nft.matches(table)),
  replaceTable: async (table) => {
    if (table.name === 'unbounded') throw new Error('EOPNOTSUPP');
    await nft.replaceTable(table);
  },
});

let last: AgentReport | undefined;
const reporter = { report: async (report: AgentReport) => void (last = report) };
const start = (nft?: Nftables): ReturnType<typeof startAgent> => {
  last = undefined;
  const sections = (config: AgentConfig, services: HostServices) => [...sectionsOf(config, services), example()];
  return startAgent(dataplane, {
    flags: ['--manifests-dir', folder],
    sections,
    overrides: { reporter, ...(nft && { nft }) },
  });
};
const table = (): string => run('nft', '-s', 'list', 'table', 'inet', 'unbounded');
const reaches = (pod: Netns, address: string): boolean => {
  try {
    run('nsenter', `--net=${pod.path}`, 'ping', '-c1', '-W1', address);
    return true;
  } catch {
    return false;
  }
};

const main = async (): Promise<Report> => {
  makeNode();
  run('sysctl', '-qw', 'net.ipv4.ip_forward=1');
  writeObjects({ 'example.net/closed-prefix': '192.0.2.0/24' }, folder);
  const { child, within } = startPeer();
  await until('the peer has its namespace', () => {
    try {
      run('ip', 'link', 'set', 'wire', 'netns', String(child.pid), 'name', 'eth0');
      return true;
    } catch {
      return false;
    }
  });
  for (const argv of ['link set lo up', 'link set eth0 up', 'addr add 10.1.0.31/24 dev eth0'])
    within('ip', ...argv.split(' '));
  const first = await start();
  await until('the peer has a bridge', () => within('ip', '-br', 'link').includes('cbr0'));
  const [pod, far] = [plugPod(run, PODS[0]), plugPod(within, PODS[1])];
  await until('pods reach each other', () => reaches(pod, PODS[1]));
  const leaked = countIn(within, 'iifname eth0 ip daddr 100.64.0.0/10');
  const got = countIn((...argv) => run('nsenter', `--net=${pod.path}`, ...argv), `ip saddr ${FAR}`);
  within('ip', 'addr', 'add', `${FAR}/32`, 'dev', 'lo');
  await delay(1000);

  const workerData: FlowSettings = {
    ends: [pod, far].map(({ fd }, at) => ({ address: PODS[at]!, netnsFd: fd })),
    port: 7000,
    everyMs: 1,
  };
  const worker = new Worker(new URL('../connectivity/keys/flow.scenario.ts', import.meta.url), { workerData });
  const endForged = pings(['nsenter', `--net=/proc/${child.pid}/ns/net`], PODS[0], '-I', FAR);
  await delay(1000);
  const before = table();
  await first.part.stop();
  run('ip', 'route', 'add', 'default', 'via', '10.1.0.31');
  const own = run('ip', 'route', 'show', 'table', 'all', 'proto', '117')
    .split('\n')
    .find((line) => line.includes('100.66.0.0/16'))!;
  const inTable = /table (\S+)/.exec(own)?.[1] ?? 'main';
  run('ip', 'route', 'delete', '100.66.0.0/16', 'table', inTable);
  const endLeaks = pings(['nsenter', `--net=${pod.path}`], FAR);
  await delay(500);
  const second = await start(refusing(createNftables()));
  await until('it is told', () => last?.problems.some(({ reason }) => reason === 'FirewallFailed'));
  await delay(3000);
  const while_ = {
    table: table(),
    reasons: last!.problems.map(({ reason }) => reason),
    all: run('nft', 'list', 'tables'),
  };
  await second.part.stop();
  const third = await start();
  await until('all is well', () => last && !last.problems.some(({ reason }) => reason === 'FirewallFailed'));
  const leaks = { sent: await endLeaks(), seen: leaked() };
  const forged = { sent: await endForged(), got: got() };
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
  worker.postMessage('stop');
  const [flow] = (await once(worker, 'message')) as [readonly FlowCount[]];
  await third.part.stop();
  child.kill('SIGKILL');
  return {
    flow,
    tables: [before, while_.table],
    reasons: [...new Set(while_.reasons)],
    hasOtherTable: while_.all.includes('unbounded_example'),
    leaks,
    forged,
  };
};

try {
  await printReport(await main());
  process.exitCode = 0;
} catch (error) {
  console.error(error, last);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
  process.exit();
}
