import { homedir } from 'node:os';
import { join } from 'node:path';
import { type Agent, createAgent, planOf, prepareFolders, writeObjects } from './agent.ts';
import { type Carried, startCapture } from './capture.ts';
import { end, inNamespace, run, runJson, start, until } from './command.ts';
import { objectsFor, type Protocol, type VmNode, vmNodes } from './nodes.ts';
import { makeUnderlay, plugPod, podOf, type Segment } from './underlay.ts';

/**
 * Runs inside the virtual machine: two sites, an agent on each node, one protocol after the other. Prints what was seen
 * as JSON in its last line; tunnels.vm.spec.ts says what it has to be.
 */

const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
const probe = join(process.env['UNBOUNDED_ASSETS'] ?? cache, 'bin/probe');
const SINK = 9001;
const MARKER = 'the-inner-bytes-';

const FILTERS: Readonly<Record<Protocol, string>> = {
  GENEVE: 'udp dst port 6081',
  VXLAN: 'udp dst port 4789',
  IPIP: 'ip proto 4',
  WireGuard: 'udp portrange 51820-51899',
};

export interface Reached {
  readonly path: string;
  /** Answers to 3 pings of 56 bytes, and to 3 that fill the MTU with DF set. */
  readonly small: number;
  readonly full: number;
}

export interface ProtocolReport {
  readonly reached: readonly Reached[];
  /** MiB that arrived by TCP with the right checksum. */
  readonly streamedMiB: number;
  readonly wire: Readonly<Record<Exclude<Segment, 'lan2'>, Carried>>;
  /** Our devices on the first worker, with their kinds. */
  readonly devices: Readonly<Record<string, string>>;
}

export interface RestartReport {
  readonly sent: number;
  readonly lost: number;
  readonly filters: number;
  readonly programSwapped: boolean;
  readonly mapsKept: boolean;
  /** The same protocol is used by the same devices. */
  readonly devicesKept: boolean;
}

export interface Report {
  readonly kernel: string;
  readonly protocols: Readonly<Record<Protocol, ProtocolReport>>;
  readonly restarts: Readonly<Partial<Record<Protocol, RestartReport>>>;
  readonly complaints: Readonly<Record<string, readonly string[]>>;
}

const say = (text: string): void => console.log(`[${(performance.now() / 1000).toFixed(1)}] ${text}`);

const named = (name: string): VmNode => vmNodes.find((node) => node.name === name)!;

const pings = async (from: string, to: string, more: readonly string[]): Promise<number> => {
  const pattern = Buffer.from(MARKER).toString('hex');
  const printed = await run([
    ...inNamespace(from),
    'sh',
    '-c',
    `ping -n -c 3 -i 0.2 -W 15 -p ${pattern} ${more.join(' ')} ${to}; :`,
  ]);
  return Number(/(\d+) received/.exec(printed)?.[1] ?? 0);
};

/** From a pod, or from the node itself, to a pod. */
const PATHS: readonly { from: string; host?: boolean; to: string }[] = [
  { from: 'w1', to: 'g1' },
  { from: 'w1', to: 'w2' },
  { from: 'w1', to: 'g2' },
  { from: 'g1', to: 'w2' },
  { from: 'w2', to: 'w1' },
  { from: 'w1', host: true, to: 'w2' },
];

const reach = async ({ from, host = false, to }: (typeof PATHS)[number]): Promise<Reached> => {
  const source = host ? from : podOf(named(from));
  const target = named(to).podIp;
  const headers = 28;
  const fill = planOf(named(from)).mtuBytes - headers;
  return {
    path: `${host ? 'node' : 'pod'} ${from} - pod ${to}`,
    small: await pings(source, target, []),
    full: await pings(source, target, ['-M', 'do', '-s', String(fill)]),
  };
};

const ourDevices = async (node: VmNode): Promise<Record<string, string>> => {
  const links = await runJson<{ ifname: string; ifalias?: string; linkinfo?: { info_kind?: string } }[]>([
    ...inNamespace(node.name),
    ...['ip', '-d', '-j', 'link', 'show'],
  ]);
  return Object.fromEntries(
    links.flatMap(({ ifname, ifalias, linkinfo }) =>
      ifalias === 'unbounded' ? [[ifname, linkinfo?.info_kind ?? '']] : [],
    ),
  );
};

const usesOnly =
  (protocol: Protocol) =>
  (node: VmNode): boolean => {
    const plan = planOf(node);
    return protocol === 'WireGuard'
      ? plan.tunnels.length === 0 && plan.wireGuard.length > 0
      : plan.wireGuard.length === 0 && plan.tunnels.every(({ kind }) => kind === protocol);
  };

const tryProtocol = async (protocol: Protocol): Promise<ProtocolReport> => {
  say(`${protocol}: begins`);
  for (const node of vmNodes) writeObjects(node, objectsFor(protocol));
  await until(`all plans are for ${protocol}`, () => vmNodes.every(usesOnly(protocol)));
  const [first, last] = [podOf(named('w1')), named('w2').podIp];
  await until(`pods reach each other over ${protocol}`, async () => (await pings(first, last, [])) === 3);
  await until(
    'what the protocol before needed is gone',
    async () => Object.keys(await ourDevices(named('w1'))).length === 3,
  );
  const lan = await startCapture('lan1');
  const wan = await startCapture('wan');
  const reached: Reached[] = [];
  for (const path of PATHS) reached.push(await reach(path));
  const { bytes } = await runJson<{ bytes: number }>([...inNamespace(first), probe, 'stream', `${last}:${SINK}`, '2']);
  return {
    reached,
    streamedMiB: bytes >> 20,
    wire: { lan1: await lan.stop(FILTERS[protocol], MARKER), wan: await wan.stop(FILTERS[protocol], MARKER) },
    devices: await ourDevices(named('w1')),
  };
};

interface Attached {
  readonly filters: number;
  readonly program: number;
  readonly maps: string;
}

/** The programs at the anchor's egress: on this kernel they are filters of a clsact qdisc. */
const attached = async (node: VmNode): Promise<Attached> => {
  const show = ['tc', '-j', 'filter', 'show', 'dev', 'unbounded0', 'egress'];
  const filters = await runJson<{ options?: { prog?: { id?: number } } }[]>([...inNamespace(node.name), ...show]);
  const ids = filters.flatMap(({ options }) => options?.prog?.id ?? []);
  const program = ids[0] ?? 0;
  const { map_ids } = await runJson<{ map_ids: number[] }>(['bpftool', '-j', 'prog', 'show', 'id', String(program)]);
  const pinned = await runJson<{ id: number }>([
    'bpftool',
    '-j',
    'map',
    'show',
    'pinned',
    `/sys/fs/bpf/${node.name}/maps/unbounded_endpoints_v4`,
  ]);
  return { filters: ids.length, program, maps: `${pinned.id} ${map_ids.includes(pinned.id)}` };
};

/** Pings that go on until they are stopped. */
const startFlow = (from: string, to: string) => {
  const answered = new Set<number>();
  const child = start([...inNamespace(from), 'ping', '-n', '-i', '0.02', to], (line) => {
    const number = /icmp_seq=(\d+)/.exec(line)?.[1];
    if (number !== undefined) answered.add(Number(number));
  });
  return {
    answered,
    /** How many of those before the last one that was answered got no answer. */
    async stop(): Promise<{ sent: number; lost: number }> {
      await end(child, 'SIGINT');
      const sent = Math.max(...answered);
      return { sent, lost: sent - answered.size };
    },
  };
};

/** Kills the agents of a worker and its gateway under traffic, and starts them again. */
const tryRestart = async (agents: ReadonlyMap<string, Agent>): Promise<RestartReport> => {
  const before = await attached(named('w1'));
  const devicesBefore = JSON.stringify(await ourDevices(named('w1')));
  const flow = startFlow(podOf(named('w1')), named('w2').podIp);
  await until('the flow is under way', () => flow.answered.size > 20);
  for (const name of ['w1', 'g1']) await agents.get(name)!.end('SIGKILL');
  await Promise.all(['w1', 'g1'].map((name) => agents.get(name)!.start()));
  const soFar = Math.max(...flow.answered);
  await until('the flow goes on after that', () => Math.max(...flow.answered) > soFar + 20);
  const after = await attached(named('w1'));
  return {
    ...(await flow.stop()),
    filters: after.filters,
    programSwapped: after.program !== before.program,
    mapsKept: after.maps === before.maps,
    devicesKept: JSON.stringify(await ourDevices(named('w1'))) === devicesBefore,
  };
};

const main = async (): Promise<void> => {
  await makeUnderlay();
  say('underlay made');
  const agents = new Map<string, Agent>();
  for (const node of vmNodes) {
    prepareFolders(node);
    writeObjects(node, objectsFor('VXLAN'));
    agents.set(node.name, createAgent(node));
  }
  await Promise.all([...agents.values()].map((agent) => agent.start()));
  say('agents run');
  for (const node of vmNodes) {
    await plugPod(node, planOf(node).mtuBytes);
    start([...inNamespace(podOf(node)), probe, 'serve'], say).unref();
  }
  const protocols: Partial<Record<Protocol, ProtocolReport>> = {};
  const restarts: Partial<Record<Protocol, RestartReport>> = {};
  for (const protocol of ['VXLAN', 'GENEVE', 'IPIP', 'WireGuard'] as const) {
    protocols[protocol] = await tryProtocol(protocol);
    say(`${protocol}: ${JSON.stringify(protocols[protocol])}`);
    if (protocol === 'GENEVE' || protocol === 'WireGuard') {
      restarts[protocol] = await tryRestart(agents);
      say(`restart: ${JSON.stringify(restarts[protocol])}`);
    }
  }
  const complaints = Object.fromEntries([...agents].map(([name, agent]) => [name, agent.complaints]));
  const report = { kernel: (await run(['uname', '-r'])).trim(), protocols, restarts, complaints };
  console.log(JSON.stringify(report));
};

await main().then(
  () => process.exit(0),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
