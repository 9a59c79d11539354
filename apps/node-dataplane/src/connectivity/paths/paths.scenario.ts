import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { nodeCommand } from '@unbounded/config/node-command';
import { appEntry } from '@unbounded/testing';
import type { Path } from '@unbounded/health';
import { createNetns, type Netns } from '@unbounded/netlink';
import type { FlowCount, FlowSettings } from '../keys/flow.scenario.ts';
import {
  endFlow,
  enterNode,
  keyFields,
  type KeyFacts,
  plugPod,
  readKeys,
  run,
  until,
  writeWhole,
} from '../keys/rotation.scenario.ts';

/**
 * Two gateways of two sites, each behind a router of its own that hides its address, with the agent, node-keeper, wireguard-go, the relay's
 * proxies, and a pod. The routers meet on a WAN, where the relay is.
 *
 *   pod a - gateway a - router a --+-- router b - gateway b - pod b
 *                                  relay
 */

const cache = process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
const wireguardGo = join(process.env['UNBOUNDED_ASSETS'] ?? cache, 'bin/wireguard-go');
const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;
const RELAY = '198.51.100.9';
const ROTATE = 'net.unbounded-cloud.io/rotate-wireguard-key';
const PORT_RANGE = '51000-65535';

export type Blocked = 'none' | 'all' | 'out' | 'connections';

interface Move {
  /** RFC 3339. */
  readonly time: string;
  readonly device: string;
  readonly path: Path;
  readonly from?: Path;
  readonly reason: string;
}

export interface Gateway {
  readonly name: string;
  /** The last path to the other gateway, as the agent's log says. */
  readonly path: Path | undefined;
  readonly moves: readonly Move[];
  /** UDP through its router. out: only what leaves its site is dropped. connections: UDP passes, and no new TCP connection. */
  block(what: Blocked): void;
  startAgent(): void;
  /** Kills the agent, as a power cut would. */
  killAgent(): Promise<void>;
  /** The peer's endpoint, as wireguard-go has it; of the last lane where there are several. */
  endpoint(): string;
  /** The endpoints that node-keeper would start wireguard-go with. */
  unitEndpoints(): string[];
  readonly keys: KeyFacts;
  /** Asks for a new key. */
  rotate(): void;
}

interface Made extends Gateway {
  readonly number: number;
  readonly folder: string;
  readonly netns: Netns;
  readonly pod: Netns;
  readonly podAddress: string;
  readonly router: Netns;
  readonly isCallable: boolean;
  heard: KeyFacts;
  asked: string | undefined;
  run(...argv: string[]): string;
}

const within = (netns: Netns, ...argv: string[]): string => run('nsenter', `--net=${netns.path}`, ...argv);
const ip = (netns: Netns, text: string): void => void within(netns, 'ip', ...text.split(' '));

/** What the agent said of its path, also when that is the same for another reason. */
const movesIn = (log: readonly string[]): Move[] =>
  log.flatMap((line) => (line.includes('the path to a peer is ') ? [JSON.parse(line) as Move] : []));

const FORWARD: Readonly<Record<Blocked, readonly string[]>> = {
  none: [],
  all: ['meta l4proto udp'],
  out: ['oifname wan meta l4proto udp'],
  connections: ['meta l4proto tcp ct state new'],
};

const makeRouter = (number: number, hub: Netns, node: Netns, isCallable: boolean): Netns => {
  const router = createNetns();
  within(router, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
  ip(router, `link add wan type veth peer name site${number} netns ${hub.path}`);
  ip(router, `link add lan type veth peer name eth0 netns ${node.path}`);
  ip(router, `addr add 198.51.100.${number}/24 dev wan`);
  ip(router, `addr add 10.${number}.0.254/24 dev lan`);
  for (const link of ['wan', 'lan']) ip(router, `link set ${link} up`);
  ip(hub, `link set site${number} master wan up`);
  ip(node, 'link set lo up');
  ip(node, `addr add 10.${number}.0.1/24 dev eth0`);
  ip(node, 'link set eth0 up');
  ip(node, `route add default via 10.${number}.0.254`);
  const nft = (text: string): void => void within(router, 'nft', text);
  nft('add table ip nat; add table ip filter');
  nft('add chain ip nat out { type nat hook postrouting priority 100; }');
  nft('add chain ip nat in { type nat hook prerouting priority -100; }');
  nft('add chain ip filter forward { type filter hook forward priority 0; }');
  nft(`add rule ip nat out oifname wan masquerade${isCallable ? '' : ' fully-random'}`);
  if (isCallable) nft(`add rule ip nat in iifname wan udp dport ${PORT_RANGE} dnat to 10.${number}.0.1`);
  return router;
};

const makeGateway = async (
  number: number,
  { root, hub, isCallable }: { readonly root: string; readonly hub: Netns; readonly isCallable: boolean },
  undo: AsyncDisposableStack,
): Promise<Made> => {
  const name = `g${number}`;
  const folder = join(root, name);
  for (const part of ['objects', 'wireguard']) mkdirSync(join(folder, part), { recursive: true });
  const [netns, pod] = [undo.use(createNetns()), undo.use(createNetns())];
  const router = undo.use(makeRouter(number, hub, netns, isCallable));
  const { inNode, program } = await enterNode(folder, netns, undo);
  const log: string[] = [];
  let agent: ChildProcess | undefined;
  program(appEntry('node-keeper'), '--wireguard-go', wireguardGo).stdout!.resume();
  const made: Made = {
    name,
    number,
    folder,
    netns,
    pod,
    podAddress: `100.${64 + number}.${number}.10`,
    router,
    isCallable,
    run: inNode,
    get moves() {
      return movesIn(log);
    },
    get path() {
      return movesIn(log).at(-1)?.path;
    },
    block(what) {
      const rules = FORWARD[what].map((match) => `add rule ip filter forward ${match} drop`);
      within(router, 'nft', ['flush chain ip filter forward', ...rules].join('; '));
    },
    startAgent() {
      const options = ['--node-name', name, '--manifests-dir', join(folder, 'objects')];
      log.length = 0;
      agent = program(join(import.meta.dirname, '../keys/agent.scenario.ts'), ...options);
      agent.stdout!.on('data', (text: Buffer) => log.push(...text.toString().trim().split('\n')));
    },
    async killAgent() {
      const ended = new Promise((resolve) => agent!.once('exit', resolve));
      inNode('pkill', '-KILL', '-f', 'agent.scenario.ts'); // in its own process namespace
      await ended;
    },
    heard: { generation: 0, publicKey: '' },
    asked: undefined,
    get keys() {
      return readKeys(join(folder, 'wireguard'));
    },
    rotate: () => void (made.asked = `request ${performance.now()}`),
    unitEndpoints: () =>
      inNode('sh', '-c', 'cat /run/unbounded/keeper/units/*.json').match(/(?<="endpoint":")[^"]+/g) ?? [],
    endpoint: () => inNode('wg', 'show', 'all', 'endpoints').trim().split(/\s+/).at(-1) ?? '',
  };
  return made;
};

const object = (kind: string, name: string, rest: object): object => ({ ...API, kind, metadata: { name }, ...rest });

const objectsOf = (gateways: readonly Made[]): object[] => [
  object('Mesh', 'default', { spec: { relay: { provider: 'external', external: { endpoint: `${RELAY}:3478` } } } }),
  ...gateways.flatMap((gateway) => {
    const { number, name, isCallable } = gateway;
    const podCidrAssignments = [{ cidrBlocks: [`100.${64 + number}.0.0/16`] }];
    const member = {
      name,
      siteName: `s${number}`,
      ...keyFields(gateway.heard),
      internalIPs: [`10.${number}.0.1`],
      externalIPs: isCallable ? [`198.51.100.${number}`] : [],
      podCIDRs: [`100.${64 + number}.${number}.0/24`],
      tunnelProtocols: ['VXLAN', 'WireGuard'],
      gatewayWireguardPort: 51_820 + number,
    };
    return [
      object('Site', `s${number}`, { spec: { nodeCidrs: [`10.${number}.0.0/24`], podCidrAssignments } }),
      object('GatewayPool', `p${number}`, {
        spec: { type: 'External', nodeSelector: { pool: `p${number}` } },
        status: { nodes: [member] },
      }),
      object('SiteGatewayPoolAssignment', `a${number}`, {
        spec: { sites: [`s${number}`], gatewayPools: [`p${number}`] },
      }),
    ];
  }),
  object('GatewayPoolPeering', 'wan', { spec: { gatewayPools: ['p1', 'p2'] } }),
];

/** What the API server and the controllers do. */
const publish = (gateways: readonly Made[]): void => {
  for (const gateway of gateways)
    if (existsSync(join(gateway.folder, 'wireguard/server.pub'))) gateway.heard = gateway.keys;
  for (const { folder, name, number, asked } of gateways) {
    const node = {
      kind: 'Node',
      metadata: { name, annotations: asked === undefined ? {} : { [ROTATE]: asked } },
      spec: { podCIDRs: [`100.${64 + number}.${number}.0/24`] },
      status: { addresses: [{ type: 'InternalIP', address: `10.${number}.0.1` }] },
    };
    const text = [...objectsOf(gateways), node].map((one) => JSON.stringify(one)).join('\n---\n');
    writeWhole(join(folder, 'objects/all.yaml'), text);
  }
};

const startRelay = (hub: Netns, undo: AsyncDisposableStack): void => {
  const argv = [
    `--net=${hub.path}`,
    'setpriv',
    '--pdeathsig',
    'KILL',
    ...nodeCommand,
    appEntry('relay'),
    '--health-port',
    '0',
  ];
  const relay = spawn('nsenter', argv, { stdio: ['ignore', 'ignore', 'inherit'] });
  undo.defer(async () => {
    const ended = new Promise((resolve) => relay.once('exit', resolve));
    relay.kill('SIGKILL');
    await ended;
  });
};

const makeHub = (undo: AsyncDisposableStack): Netns => {
  const hub = undo.use(createNetns());
  ip(hub, 'link set lo up');
  ip(hub, 'link add wan type bridge');
  ip(hub, `addr add ${RELAY}/24 dev wan`);
  ip(hub, 'link set wan up');
  return hub;
};

export interface PathWorld extends AsyncDisposable {
  readonly gateways: readonly [Gateway, Gateway];
  /** Whether a pod reaches the other one now. */
  reaches(): boolean;
  /** 1,000 packets a second in each direction, until the returned function is called. */
  startFlow(): () => Promise<FlowCount[]>;
  /** Waits until both ends send by the path, and direct is proven. Returns the milliseconds. */
  untilBoth(path: Path, withinMs?: number): Promise<number>;
}

/** @param blocked at both routers from the beginning */
export const makeWorld = async (options: {
  readonly blocked: Blocked;
  /** The second gateway has no address that others could call. */
  readonly isHidden?: boolean;
}): Promise<PathWorld> => {
  await using undo = new AsyncDisposableStack();
  const root = mkdtempSync(join(tmpdir(), 'paths-'));
  undo.defer(() => rmSync(root, { recursive: true, force: true }));
  const hub = makeHub(undo);
  startRelay(hub, undo);
  const a = await makeGateway(1, { root, hub, isCallable: true }, undo);
  const b = await makeGateway(2, { root, hub, isCallable: options.isHidden !== true }, undo);
  const gateways = [a, b] as const;
  for (const gateway of gateways) gateway.block(options.blocked);
  publish(gateways);
  const publishing = setInterval(() => publish(gateways), 100);
  undo.defer(() => clearInterval(publishing));
  for (const gateway of gateways) gateway.startAgent();
  await until('bridges', () => gateways.every((gateway) => gateway.run('ls', '/sys/class/net').includes('cbr0')));
  for (const gateway of gateways) plugPod(gateway);
  const all = undo.move();
  const reaches = (): boolean => {
    try {
      within(a.pod, 'ping', '-c1', '-W1', b.podAddress);
      return true;
    } catch {
      return false;
    }
  };
  return {
    gateways,
    reaches,
    startFlow() {
      const ends = gateways.map(({ podAddress, pod }) => ({ address: podAddress, netnsFd: pod.fd }));
      const workerData: FlowSettings = { ends, port: 7000, everyMs: 1 };
      const worker = new Worker(new URL('../keys/flow.scenario.ts', import.meta.url), { workerData });
      all.defer(() => void worker.terminate());
      return () => endFlow(worker);
    },
    async untilBoth(path, withinMs = 30_000) {
      const began = performance.now();
      const isThere = ({ moves }: Gateway): boolean =>
        moves.at(-1)?.path === path && !['noRelay', 'handshake'].includes(moves.at(-1)?.reason ?? '');
      await until(`both ends send by ${path}`, () => gateways.every(isThere), withinMs);
      return performance.now() - began;
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
};
