import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { agentCommand } from '@unbounded/config/node-command';
import { appEntry } from '@unbounded/testing';
import { createNetns, type Netns } from '@unbounded/netlink';
import type { FlowCount, FlowSettings } from './flow.scenario.ts';
import type { RotationTimes } from './rotation.ts';

/**
 * Two nodes on one wire, each in namespaces of its own with the agent, node-keeper and wireguard-go, and a pod on each.
 * Instead of an API server the test carries what a node says of its keys to the other one's folder of objects.
 */

export interface Shape {
  readonly dataplane: 'ebpf' | 'netlink';
  /** Nodes of a mesh, or gateways of two sites. */
  readonly role: 'mesh' | 'gateway';
}

const TIMES: RotationTimes = { quietMs: 2500, aliveMs: 180_000, previousMs: 3000, tellMs: 4000 };

const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
const wireguardGo = join(process.env['UNBOUNDED_ASSETS'] ?? cache, 'bin/wireguard-go');
const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;
/** What is looked at takes a process or two each time. */
const POLL_MS = 100;
const NAMES = ['a', 'b'];

/** Folders of its own over those of the machine, processes of its own, and the test's folder for its keys. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mkdir -p /etc/wireguard; mount --bind "$0" /etc/wireguard
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
touch "$0/../entered"; exec sleep infinity`;

export const run = (...argv: string[]): string => execFileSync(argv[0]!, argv.slice(1), { encoding: 'utf8' });

/** Looks until it is so. @throws Error with what was waited for */
export const until = async (what: string, isSo: () => boolean, withinMs = 60_000): Promise<void> => {
  const end = performance.now() + withinMs;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

export interface KeyFacts {
  readonly generation: number;
  readonly publicKey: string;
  readonly nextPublicKey?: string;
  /** The key before is still believed in probes. */
  readonly hasPrevious?: boolean;
}

export interface TestNode {
  readonly name: string;
  readonly keyFolder: string;
  readonly keys: KeyFacts;
  /** Lines of the agent's log. */
  readonly log: readonly string[];
  /** Names of its WireGuard interfaces. */
  devices(): string[];
  run(...argv: string[]): string;
  /** Asks for a new key. */
  rotate(): void;
  startAgent(): void;
  /** Kills the agent, as a power cut would. */
  killAgent(): Promise<void>;
}

interface Made extends TestNode {
  readonly netns: Netns;
  readonly pod: Netns;
  readonly podAddress: string;
  readonly folder: string;
  readonly number: number;
  heard: KeyFacts;
  asked: string | undefined;
}

export const readKeys = (keyFolder: string): KeyFacts => {
  const file = join(keyFolder, 'server.keys.json');
  if (!existsSync(file)) return { generation: 0, publicKey: readFileSync(join(keyFolder, 'server.pub'), 'utf8') };
  const { generation, current, next, previous } = JSON.parse(readFileSync(file, 'utf8')) as {
    generation: number;
    current: { publicKey: string };
    next?: { publicKey: string };
    previous?: object;
  };
  const hasPrevious = previous !== undefined;
  return { generation, publicKey: current.publicKey, hasPrevious, ...(next ? { nextPublicKey: next.publicKey } : {}) };
};

const startHolder = (netns: Netns, keyFolder: string): ChildProcess =>
  spawn(
    'nsenter',
    [
      `--net=${netns.path}`,
      'unshare',
      '--mount',
      '--propagation',
      'private',
      '--pid',
      '--fork',
      '--kill-child=SIGKILL',
    ].concat(['--mount-proc', 'sh', '-c', ENTER, keyFolder]),
    { stdio: 'inherit' },
  );

type Run = (...argv: string[]) => string;

/** A pod on the bridge of its node. */
export const plugPod = (node: Pick<Made, 'pod' | 'netns' | 'number' | 'podAddress' | 'run'>): void => {
  const { pod, netns, number, podAddress } = node;
  const inPod: Run = (...argv) => run('nsenter', `--net=${pod.path}`, ...argv);
  inPod('ip', 'link', 'set', 'lo', 'up');
  inPod('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'pod0', 'netns', netns.path);
  inPod('ip', 'addr', 'add', `${podAddress}/24`, 'dev', 'eth0');
  inPod('ip', 'link', 'set', 'eth0', 'up');
  inPod('ip', 'route', 'add', 'default', 'via', `100.${64 + number}.${number}.1`);
  node.run('ip', 'link', 'set', 'pod0', 'up', 'master', 'cbr0');
};

/** How to run programs in a node that is to be there until `undo`. */
export const enterNode = async (folder: string, netns: Netns, undo: AsyncDisposableStack) => {
  const holder = startHolder(netns, join(folder, 'wireguard'));
  undo.defer(async () => {
    const ended = new Promise((resolve) => holder.once('exit', resolve));
    holder.kill('SIGKILL'); // and with it everything in its process namespace
    await ended;
  });
  await until(`the namespaces of ${folder}`, () => existsSync(join(folder, 'entered')));
  const ns = `/proc/${holder.pid}/ns`;
  const enter = [`--net=${netns.path}`, `--mount=${ns}/mnt`, `--pid=${ns}/pid_for_children`];
  return {
    enter,
    inNode: (...argv: string[]): string => run('nsenter', ...enter, ...argv),
    program: (file: string, ...argv: string[]): ChildProcess =>
      spawn('nsenter', [...enter, ...agentCommand, file, ...argv], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, ROTATION_TIMES: JSON.stringify(TIMES) },
      }),
  };
};

/** @param undo what ends the node */
const makeNode = async (
  number: number,
  root: string,
  { dataplane }: Shape,
  undo: AsyncDisposableStack,
): Promise<Made> => {
  const name = NAMES[number - 1]!;
  const folder = join(root, name);
  const keyFolder = join(folder, 'wireguard');
  for (const part of ['objects', 'wireguard']) mkdirSync(join(folder, part), { recursive: true });
  const [netns, pod] = [undo.use(createNetns()), undo.use(createNetns())];
  const { inNode, program } = await enterNode(folder, netns, undo);
  const log: string[] = [];
  let agent: ChildProcess | undefined;
  const made: Made = {
    name,
    number,
    folder,
    keyFolder,
    netns,
    pod,
    podAddress: `100.${64 + number}.${number}.10`,
    log,
    heard: { generation: 0, publicKey: '' },
    asked: undefined,
    get keys() {
      return readKeys(keyFolder);
    },
    devices: () => inNode('ls', '/sys/class/net').match(/^wg\d+$/gm) ?? [],
    run: inNode,
    rotate: () => void (made.asked = `request ${performance.now()}`),
    startAgent() {
      const options = ['--node-name', name, '--manifests-dir', join(folder, 'objects'), '--dataplane', dataplane];
      agent = program(join(import.meta.dirname, 'agent.scenario.ts'), ...options);
      agent.stdout!.on('data', (text: Buffer) => log.push(...text.toString().trim().split('\n')));
    },
    async killAgent() {
      if (!agent) return;
      const ended = new Promise((resolve) => agent!.once('exit', resolve));
      inNode('pkill', '-KILL', '-f', 'agent.scenario.ts'); // in its own process namespace
      await ended;
      agent = undefined;
    },
  };
  program(appEntry('node-keeper'), '--wireguard-go', wireguardGo).stdout!.resume();
  return made;
};

export const keyFields = ({ generation, publicKey, nextPublicKey }: KeyFacts) => ({
  wireGuardPublicKey: publicKey,
  ...(generation === 0 ? {} : { wireGuardKeyGeneration: generation }),
  ...(nextPublicKey === undefined ? {} : { wireGuardNextPublicKey: nextPublicKey }),
});

const member = ({ name, number, heard }: Made) => ({
  name,
  ...keyFields(heard),
  internalIPs: [`10.7.0.${number}`],
  podCIDRs: [`100.${64 + number}.${number}.0/24`],
  tunnelProtocols: ['VXLAN', 'WireGuard'],
});

const object = (kind: string, name: string, rest: object): object => ({ ...API, kind, metadata: { name }, ...rest });

const siteOf = (name: string, nodeCidrs: string[], pods: number[]): object =>
  object('Site', name, {
    spec: {
      nodeCidrs,
      podCidrAssignments: [{ cidrBlocks: pods.map((number) => `100.${64 + number}.0.0/16`) }],
      tunnelProtocol: 'WireGuard',
      healthCheckSettings: { transmitInterval: 200 },
    },
  });

/** All objects but the Node. */
const objectsOf = (nodes: readonly Made[], { role }: Shape): object[] => {
  if (role === 'mesh')
    return [
      siteOf(
        's1',
        ['10.7.0.0/24'],
        nodes.map(({ number }) => number),
      ),
      object('SiteNodeSlice', 's1-0', { siteName: 's1', sliceIndex: 0, nodes: nodes.map(member) }),
    ];
  return [
    ...nodes.flatMap((node) => {
      const { number } = node;
      const gateway = { ...member(node), siteName: `s${number}`, externalIPs: [`10.7.0.${number}`] };
      return [
        siteOf(`s${number}`, [`10.7.0.${number}/32`], [number]),
        object('GatewayPool', `p${number}`, {
          spec: { type: 'External', nodeSelector: { pool: `p${number}` } },
          status: { nodes: [{ ...gateway, gatewayWireguardPort: 51_820 + number }] },
        }),
        object('SiteGatewayPoolAssignment', `a${number}`, {
          spec: { sites: [`s${number}`], gatewayPools: [`p${number}`] },
        }),
      ];
    }),
    object('GatewayPoolPeering', 'wan', {
      spec: { gatewayPools: ['p1', 'p2'], healthCheckSettings: { transmitInterval: 200 } },
    }),
  ];
};

const nodeObject = ({ name, number, asked }: Made): object => ({
  kind: 'Node',
  metadata: { name, annotations: asked === undefined ? {} : { 'net.unbounded-cloud.io/rotate-wireguard-key': asked } },
  spec: { podCIDRs: [`100.${64 + number}.${number}.0/24`] },
  status: { addresses: [{ type: 'InternalIP', address: `10.7.0.${number}` }] },
});

export const writeWhole = (file: string, text: string): void => {
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
};

/** What the API server and the controllers do: a node's keys reach the others' objects a moment later. */
const publish = (nodes: readonly Made[], shape: Shape): void => {
  for (const node of nodes) if (existsSync(join(node.keyFolder, 'server.pub'))) node.heard = node.keys;
  for (const node of nodes) {
    const objects = [...objectsOf(nodes, shape), nodeObject(node)];
    writeWhole(join(node.folder, 'objects/all.yaml'), objects.map((one) => JSON.stringify(one)).join('\n---\n'));
  }
};

/** What a pod sent, and how many of those arrived at the other pod's socket while that had no room. */
interface PodCount extends FlowCount {
  readonly overflowed: number;
}

/** `Udp: … RcvbufErrors` of a network. */
export const overflowedIn = (netns: Netns): number => {
  const [names, values] = run('nsenter', `--net=${netns.path}`, 'cat', '/proc/net/snmp')
    .split('\n')
    .filter((line) => line.startsWith('Udp:'))
    .map((line) => line.split(' '));
  return Number(values![names!.indexOf('RcvbufErrors')]);
};

export interface TestNetwork extends AsyncDisposable {
  readonly nodes: readonly TestNode[];
  /** Packets between the pods, until the returned function is called. */
  startFlow(): () => Promise<PodCount[]>;
}

const joinNodes = ([a, b]: readonly Made[]): void => {
  run(
    'nsenter',
    `--net=${a!.netns.path}`,
    'ip',
    'link',
    'add',
    'eth0',
    'type',
    'veth',
    'peer',
    'name',
    'eth0',
    'netns',
    b!.netns.path,
  );
  for (const { netns, number } of [a!, b!]) {
    const inNet = (...argv: string[]): string => run('nsenter', `--net=${netns.path}`, 'ip', ...argv);
    inNet('link', 'set', 'lo', 'up');
    inNet('addr', 'add', `10.7.0.${number}/24`, 'dev', 'eth0');
    inNet('link', 'set', 'eth0', 'up');
    inNet('route', 'add', 'default', 'via', '10.7.0.254');
  }
};

export const endFlow = (worker: Worker): Promise<FlowCount[]> =>
  new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, no window
    worker.postMessage('stop');
  });

export const makeNetwork = async (shape: Shape): Promise<TestNetwork> => {
  await using undo = new AsyncDisposableStack();
  const root = mkdtempSync(join(tmpdir(), 'rotation-'));
  undo.defer(() => rmSync(root, { recursive: true, force: true }));
  const nodes = [await makeNode(1, root, shape, undo), await makeNode(2, root, shape, undo)];
  joinNodes(nodes);
  publish(nodes, shape);
  const publishing = setInterval(() => publish(nodes, shape), 100);
  undo.defer(() => clearInterval(publishing));
  for (const node of nodes) node.startAgent();
  await until('bridges', () => nodes.every((node) => node.run('ls', '/sys/class/net').includes('cbr0')));
  for (const node of nodes) plugPod(node);
  const reach = (): boolean => {
    try {
      run('nsenter', `--net=${nodes[0]!.pod.path}`, 'ping', '-c1', '-W1', nodes[1]!.podAddress);
      return true;
    } catch {
      return false;
    }
  };
  await until('the pods reach each other', reach);
  const all = undo.move();
  return {
    nodes,
    startFlow() {
      const ends = nodes.map(({ podAddress, pod }) => ({ address: podAddress, netnsFd: pod.fd }));
      const workerData: FlowSettings = { ends, port: 7000, everyMs: 2 };
      const worker = new Worker(new URL('./flow.scenario.ts', import.meta.url), { workerData });
      all.defer(() => void worker.terminate());
      return async () => {
        const counts = await endFlow(worker);
        return counts.map((count, index) => ({ ...count, overflowed: overflowedIn(nodes[1 - index]!.pod) }));
      };
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
};
