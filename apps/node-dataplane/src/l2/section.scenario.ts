/**
 * Two nodes with the section of Networks, each in namespaces of its own (section.kernel.spec.ts): this one, n1 with two pods, and n2 with
 * one, which is this program with the argument "peer". Prints what it saw as JSON.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { L2_LAYOUT_VERSION } from '@unbounded/bpf-maps/l2';
import { DEVICES } from '@unbounded/config/ownership';
import { createNetns } from '@unbounded/netlink';
import { NAMESPACES } from '../agent/agent-node.testdata.ts';
import { printReport } from '../printed-report.testdata.ts';
import type { Section, SectionPass } from '../section.port.ts';
import { PORT_PREFIX } from './names.ts';
import {
  createL2Node,
  endpoints,
  type L2Node,
  locatorOf,
  nothing,
  type Pod,
  plugPod,
  run,
  runs,
  settleWire,
  WIRE,
} from './l2-node.testdata.ts';

interface Kernel {
  readonly devices: readonly string[];
  readonly routes: readonly string[];
  readonly tables: readonly string[];
  readonly pins: readonly string[];
}

export interface Report {
  readonly idle: Kernel;
  readonly conditions: readonly (string | undefined)[];
  /** Between e1 and e3, by IPv4 and IPv6. */
  readonly reached: readonly boolean[];
  /** The MAC that e1 has of e3. */
  readonly neighbor: string;
  /** Its state of e3's IPv6 address once its kernel has asked e3 itself, as it does every minute. */
  readonly confirmed: string;
  /** From e1 to e2, which is in another segment of the same node, and to e3 with a MAC of its own making. */
  readonly apart: readonly boolean[];
  /** ARP between the nodes while e1 asks for e3 anew. */
  readonly arpOnWire: number;
  /** Received and sent by e1 over two agents of n1, one after the other, and with the first one's programs between them. */
  readonly restarted: { readonly sent: number; readonly lost: number };
  /** Programs that are pinned, before and after. */
  readonly programs: readonly [readonly string[], readonly string[]];
  /** What a pass without changes wrote, by the kernel's notifications. */
  readonly atRest: string;
  /** Devices and tables that were taken away by hand, and what a pass reports of the repair. */
  readonly repaired: { readonly reached: boolean; readonly problems: readonly string[] };
  readonly dropped: Readonly<Record<string, number>>;
  /** Of e1. */
  readonly frames: readonly string[];
  /** What n2 sent that no port took. */
  readonly received: readonly string[];
  readonly additions: readonly (readonly string[])[];
  readonly withoutLocator: string | undefined;
  readonly left: Kernel;
}

export interface NativeReport {
  readonly reached: readonly boolean[];
  readonly dropped: Readonly<Record<string, number>>;
}

const kernel = (): Kernel => ({
  devices: [DEVICES.l2Entry, DEVICES.l2Exit].filter((name) => runs('ip', 'link', 'show', name)),
  routes: run('ip', '-6', 'route', 'show', 'proto', '119').split('\n').filter(Boolean),
  tables: run('nft', 'list', 'tables')
    .split('\n')
    .filter((line) => line.includes('l2')),
  pins: existsSync('/sys/fs/bpf/unbounded') ? readdirSync('/sys/fs/bpf/unbounded') : [],
});

const conditionOf = ({ report }: SectionPass): string | undefined => {
  const [condition] = report.conditions ?? [];
  return condition && `${condition.status} ${condition.reason}: ${condition.message}`;
};

/** n2: until its standard input ends. */
const servePeer = async (isNative: boolean): Promise<void> => {
  while (!runs('ip', 'link', 'show', WIRE)) await delay(20);
  settleWire(2, 1);
  plugPod(endpoints[2]);
  const section = await createL2Node('n2', isNative).open();
  console.log(JSON.stringify(conditionOf(await section.pass()) ?? null));
  for await (const _ of process.stdin); // its end
  process.exit();
};

const startPeer = async (isNative = false) => {
  const child = spawn(
    'setpriv',
    ['--pdeathsig', 'KILL', 'unshare', ...NAMESPACES, import.meta.filename, isNative ? 'native-peer' : 'peer'],
    {
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const namespace = `/proc/${child.pid}/ns/net`;
  while (run('readlink', namespace) === run('readlink', '/proc/self/ns/net')) await delay(10);
  run('ip', 'link', 'add', WIRE, 'type', 'veth', 'peer', 'name', WIRE, 'netns', `${child.pid}`);
  settleWire(1, 2);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    condition: JSON.parse(line.toString()) as string | undefined,
    /** Sends what is no frame to a locator of n1, past everything of ours on its node. */
    attack() {
      run('nsenter', `--net=${namespace}`, 'nft', 'flush', 'ruleset');
      runs('nsenter', `--net=${namespace}`, 'ping', '-c2', '-i0.1', '-W1', 'fd53:0:0:1:1:0:7:0');
    },
    end: () => child.kill('SIGKILL'),
  };
};

const ping = (pod: Pod, to: string): boolean => pod.runs('ping', '-c2', '-i0.1', '-W1', to);

/** What a kernel gives e1 by its MAC address, 02:00:00:00:00:01; pods of this test get it when they need it. */
const LINK_LOCAL = 'fe80::ff:fe00:1';

/** RFC 4861 7.3.3: e1 asks from its link-local address, by unicast, three times a second apart. */
const confirm = async (pod: Pod, address: string, { spec: { mac } }: (typeof endpoints)[number]): Promise<string> => {
  pod.run('ip', 'addr', 'add', `${LINK_LOCAL}/64`, 'dev', 'net1', 'nodad');
  pod.run('ip', '-6', 'neigh', 'replace', address, 'lladdr', mac, 'dev', 'net1', 'nud', 'probe');
  for (;;) {
    const [, state] = /(REACHABLE|FAILED)/.exec(pod.run('ip', '-6', 'neigh', 'show', address)) ?? [];
    if (state !== undefined) return state;
    await delay(50);
  }
};

/** A flow of e1 to e3, until it is asked to end. */
const startFlow = (pod: Pod) => {
  const child = spawn('nsenter', [`--net=${pod.ns.path}`, 'ping', '-i', '0.002', '192.0.2.3']);
  const answered: number[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [, sequence] = /icmp_seq=(\d+) /.exec(line) ?? [];
    if (sequence !== undefined) answered.push(Number(sequence));
  });
  return {
    /** Waits until so many more are answered. */
    async goOn(count: number): Promise<void> {
      for (const wanted = answered.length + count; answered.length < wanted;) await delay(20);
    },
    /** Up to the last one that was answered: those behind it may be under way. */
    async end(): Promise<{ sent: number; lost: number }> {
      child.kill('SIGINT');
      await once(child, 'close');
      const sent = Math.max(...answered);
      return { sent, lost: sent - new Set(answered).size };
    },
  };
};

const countArp = async (act: () => unknown): Promise<number> => {
  const capture = spawn('tcpdump', ['-lnqi', WIRE, 'arp or (ip6 proto 143 and ip6[52:2] = 0x0806)']);
  let lines = 0;
  capture.stdout.on('data', (data: Buffer) => (lines += data.toString().split('\n').filter(Boolean).length));
  await once(capture.stderr, 'data'); // it listens
  act();
  await delay(300);
  capture.kill('SIGINT');
  await once(capture, 'close');
  return lines;
};

/** What the kernel tells of. */
const changesDuring = async (act: () => Promise<void>): Promise<string> => {
  const commands = [
    ['ip', 'monitor', 'link', 'address', 'route', 'rule'],
    ['nft', 'monitor'],
  ];
  const monitors = commands.map((argv) =>
    spawn('setpriv', ['--pdeathsig', 'KILL', ...argv], { stdio: ['ignore', 'pipe', 'inherit'] }),
  );
  let printed = '';
  for (const { stdout } of monitors) stdout.on('data', (data: Buffer) => (printed += data.toString()));
  await delay(300);
  printed = '';
  await act();
  await delay(300);
  for (const monitor of monitors) monitor.kill('SIGKILL');
  return printed;
};

/** Its own end of a cable to n1. Without an address of the link, whose router solicitations would be counted. */
const settleStranger = (there: (...argv: string[]) => unknown): void => {
  there('ip', 'link', 'set', 'eth0', 'addrgenmode', 'none', 'up');
  there('ip', 'addr', 'add', 'fd00:88::2/64', 'dev', 'eth0', 'nodad');
  there('ip', 'route', 'add', 'default', 'via', 'fd00:88::1');
};

/** A host on a LAN of n1 sends to a locator of n1's, and to that of n2; also from an address that it has no right to. */
const attackFromLan = (forged?: string): void => {
  const stranger = createNetns();
  run('ip', 'link', 'add', 'lan0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', stranger.path);
  run('ip', 'link', 'set', 'lan0', 'up');
  run('ip', 'addr', 'add', 'fd00:88::1/64', 'dev', 'lan0', 'nodad');
  const there = (...argv: string[]): unknown => run('nsenter', `--net=${stranger.path}`, ...argv);
  settleStranger(there);
  // It asks nobody for the node's MAC: an answer to a forged address is a packet of the node to a locator, and counted as one.
  const mac = readFileSync('/sys/class/net/lan0/address', 'utf8').trim();
  there('ip', 'neigh', 'add', 'fd00:88::1', 'lladdr', mac, 'dev', 'eth0', 'nud', 'permanent');
  if (forged !== undefined) there('ip', 'addr', 'add', `${forged}/128`, 'dev', 'eth0', 'nodad');
  const from = forged === undefined ? [] : ['-I', forged];
  for (const number of [1, 2])
    runs('nsenter', `--net=${stranger.path}`, 'ping', '-c1', '-W1', ...from, `fd53:0:0:${number}:1:0:7:0`);
  run('ip', 'link', 'del', 'lan0'); // the kernel takes it with the namespace only some time later
  stranger.close();
};

/**
 * What is no frame: out of a port that has no program yet, and out of the device by which ports' frames enter, to somewhere else than a
 * locator.
 */
const attackAsPort = (): void => {
  const stranger = createNetns();
  const there = (...argv: string[]): unknown => run('nsenter', `--net=${stranger.path}`, ...argv);
  const device = `${PORT_PREFIX}stray`;
  run('ip', 'link', 'add', device, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', stranger.path);
  run('ip', 'link', 'set', device, 'up');
  settleStranger(there);
  const pingBy = (host: string): void => {
    const mac = readFileSync(`/sys/class/net/${host}/address`, 'utf8').trim();
    there('ip', 'neigh', 'replace', 'fd00:88::1', 'lladdr', mac, 'dev', 'eth0', 'nud', 'permanent');
    runs('nsenter', `--net=${stranger.path}`, 'ping', '-c1', '-W1', 'fd00:99::2');
  };
  pingBy(device);
  run('ip', 'link', 'set', device, 'name', 'lan0'); // no port by its name
  run('ip', 'link', 'set', 'lan0', 'master', DEVICES.l2Entry);
  pingBy(DEVICES.l2Entry);
  run('ip', 'link', 'del', 'lan0');
  stranger.close();
};

const dropsIn = (metrics: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    [...metrics.matchAll(/unbounded_firewall_dropped_packets_total\{reason="(l2_\w+)"\} (\d+)/g)].map(
      ([, reason, count]) => [reason!, Number(count)],
    ),
  );

const programs = (): string[] => readdirSync(`/sys/fs/bpf/unbounded/l2/v${L2_LAYOUT_VERSION}/programs`).sort();

/** An agent ends, and its successor takes over, while e1 sends. */
const follow = async (node: L2Node, first: Section, one: Pod) => {
  const before = programs();
  const flow = startFlow(one);
  await flow.goOn(150);
  await first.stop();
  await flow.goOn(100);
  const second = await node.open();
  await second.pass();
  await flow.goOn(150);
  return { second, restarted: await flow.end(), programs: [before, programs()] as const };
};

const main = async (): Promise<Report> => {
  const peer = await startPeer();
  const node = createL2Node('n1');
  const first = await node.open();
  node.objects = nothing;
  await first.pass();
  const idle = kernel();
  node.objects = createL2Node('n1').objects;
  const [one, two] = [plugPod(endpoints[0]), plugPod(endpoints[1])];
  const inForce = await first.pass();
  const additions = [node.additions()?.devices ?? []];
  runs('ping', '-c2', '-i0.2', 'fd00:99::2'); // the nodes know each other's MACs
  const reached = [ping(one, '192.0.2.3'), ping(one, '2001:db8::3')];
  const neighbor = one.run('ip', 'neigh', 'show', '192.0.2.3').trim();
  const confirmed = await confirm(one, '2001:db8::3', endpoints[2]);
  const arpOnWire = await countArp(() => {
    one.run('ip', 'neigh', 'flush', 'dev', 'net1');
    ping(one, '192.0.2.3');
  });
  const apart = [ping(one, '192.0.2.2')];
  one.run('ip', 'link', 'set', 'net1', 'address', '02:00:00:00:00:77');
  apart.push(ping(one, '192.0.2.3'));
  one.run('ip', 'link', 'set', 'net1', 'address', endpoints[0].spec.mac);
  ping(one, '192.0.2.3');

  const { second, ...followed } = await follow(node, first, one);

  const atRest = await changesDuring(async () => void (await second.pass()));

  attackFromLan();
  run('ip', 'link', 'del', DEVICES.l2Entry);
  run('ip', 'link', 'del', DEVICES.l2Exit);
  run('nft', 'flush', 'ruleset');
  const { report } = await second.pass();
  const repaired = { reached: ping(one, '192.0.2.3'), problems: report.problems.map(({ message }) => message) };
  attackFromLan();
  peer.attack();
  run('ip', 'link', 'del', DEVICES.l2Exit);
  ping(one, '192.0.2.3'); // the node has no way for the answers
  await second.pass();
  attackAsPort(); // last: the kernel says only so many errors a second
  await second.pass();
  const text = await node.metrics();
  const dropped = dropsIn(text);
  const counted = (metric: string): string[] =>
    text.split('\n').filter((line) => line.startsWith(metric) && !line.endsWith(' 0'));
  const frames = counted('unbounded_l2_port_frames_total');
  const received = counted('unbounded_l2_received_frames_dropped_total');
  node.locators = new Map();
  const withoutLocator = conditionOf(await second.pass());
  node.locators = new Map([1, 2].map((number) => [`n${number}`, locatorOf(number)]));
  node.objects = nothing;
  for (const pod of [one, two]) pod.run('ip', 'link', 'del', 'net1');
  await second.pass();
  additions.push(node.additions()?.devices ?? []);
  await second.stop();
  peer.end();
  const conditions = [peer.condition, conditionOf(inForce)];
  const left = kernel();
  return {
    ...{ idle, conditions, reached, neighbor, confirmed, apart, arpOnWire, ...followed, atRest, repaired },
    ...{ dropped, frames, received, additions, withoutLocator, left },
  };
};

/** Nodes that are linked by protocol None. */
const native = async (): Promise<NativeReport> => {
  const peer = await startPeer(true);
  const node = createL2Node('n1', true);
  const section = await node.open();
  const one = plugPod(endpoints[0]);
  await section.pass();
  runs('ping', '-c2', '-i0.2', 'fd00:99::2');
  const reached = [ping(one, '192.0.2.3'), ping(one, '2001:db8::3')];
  peer.attack(); // by the wire, with an address of n2 that is no locator
  attackFromLan();
  attackFromLan('fd53:0:0:2::9');
  await section.pass();
  const dropped = dropsIn(await node.metrics());
  await section.stop();
  peer.end();
  return { reached, dropped };
};

const [, , part] = process.argv;
if (part === 'peer' || part === 'native-peer') await servePeer(part === 'native-peer');
else {
  await printReport(part === 'native' ? await native() : await main());
  process.exit(); // sockets are open
}
