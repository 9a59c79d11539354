import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { agentCommand } from '@unbounded/config/node-command';
import { STATS } from '@unbounded/bpf-maps';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import { NODE_FEATURES } from '@unbounded/crds';
import { createNetns, type Netns } from '@unbounded/netlink';
import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import type { DataPathKind, KernelPlan } from '../../data-path/kernel-plan.ts';
import { renderPlan } from '../../data-path/render.ts';
import { openTcpFlows, serveTcp, type TcpFlows } from '@unbounded/testing/tcp-flows';
import { generatePrivateKey, publicKeyOf } from '@unbounded/wireguard';
import type { NodeAnswer, NodeArgs, NodeRequest } from './node-addresses.scenario.ts';

/**
 * Two sites with two gateways each, of both families, joined by VXLAN inside and between (this needs no WireGuard of the
 * kernel's): every node is a process that applies its plan in a namespace of its own, LANs and WAN are bridges. Site 2 has a pod.
 */

const HOSTS = { w1: 31, x1: 32, g1: 21, h1: 22, w2: 31, g2: 21, h2: 22 } as const;
export type NodeName = keyof typeof HOSTS;
export const NODES = Object.keys(HOSTS) as NodeName[];
const GATEWAYS: readonly NodeName[] = ['g1', 'h1', 'g2', 'h2'];
type Hub = 'lan1' | 'lan2' | 'wan';
export type Place = NodeName | Hub | 'pod2';

const siteOf = (node: NodeName): number => Number(node.at(-1));
export const addressOf = (node: NodeName, family: 4 | 6): string =>
  family === 4 ? `10.${siteOf(node)}.0.${HOSTS[node]}` : `fd00:${siteOf(node)}::${HOSTS[node]}`;
const externalOf = (node: NodeName): string => `203.0.113.${siteOf(node) * 100 + HOSTS[node]}`;
/** By which a node's own packets to other sites go, and of the pod. */
export const OVERLAY = { w2: { 4: '100.66.31.1', 6: 'fd64:66:31::1' } } as const;
export const POD = { 4: '100.66.31.9', 6: 'fd64:66:31::9' } as const;

/** A network of its own, and folders of its own over those of the machine. */
const ENTER = `set -e
for folder in /run /var/lib /etc/cni /opt/cni; do [ ! -d $folder ] || mount -t tmpfs tmpfs $folder; done
mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf
exec "$0" "$@"`;

const API = { apiVersion: 'net.unbounded-cloud.io/v1alpha1' } as const;
const object = (kind: string, name: string, rest: object): object => ({ ...API, kind, metadata: { name }, ...rest });

/**
 * A process that starves for less than two seconds must not count as dead: flows would go by another gateway, which knows nothing of a
 * connection that the first one masqueraded.
 */
const HEALTH = { transmitInterval: '200ms', detectMultiplier: 10 } as const;

/** The objects; gateways for which `isNew` is false are of the version before. */
const objectsFor = (
  keys: Readonly<Record<NodeName, string>>,
  isNew: (gateway: NodeName) => boolean,
): TopologyObjects => {
  const member = (name: NodeName) => ({
    name,
    wireGuardPublicKey: publicKeyOf(keys[name]),
    internalIPs: [addressOf(name, 4), addressOf(name, 6)],
    podCIDRs: [`100.${64 + siteOf(name)}.${HOSTS[name]}.0/24`, `fd64:${64 + siteOf(name)}:${HOSTS[name]}::/64`],
    tunnelProtocols: ['VXLAN'],
  });
  const gateway = (name: NodeName, index: number) => ({
    ...member(name),
    siteName: `s${siteOf(name)}`,
    externalIPs: [externalOf(name)],
    gatewayWireguardPort: 51_821 + index,
    ...(isNew(name) ? { features: [...NODE_FEATURES] } : {}),
  });
  const inSite =
    (site: number) =>
    (name: NodeName): boolean =>
      siteOf(name) === site;
  return {
    sites: [1, 2].map((site) =>
      object('Site', `s${site}`, {
        spec: {
          nodeCidrs: [`10.${site}.0.0/24`, `fd00:${site}::/64`],
          podCidrAssignments: [{ cidrBlocks: [`100.${64 + site}.0.0/16`, `fd64:${64 + site}::/32`] }],
          tunnelProtocol: 'VXLAN',
          healthCheckSettings: HEALTH,
        },
      }),
    ),
    slices: [1, 2].map((site) =>
      object('SiteNodeSlice', `s${site}-0`, {
        siteName: `s${site}`,
        sliceIndex: 0,
        nodes: NODES.filter((name) => !GATEWAYS.includes(name))
          .filter(inSite(site))
          .map(member),
      }),
    ),
    gatewayPools: [1, 2].map((site) =>
      object('GatewayPool', `p${site}`, {
        spec: { type: 'External', nodeSelector: { pool: `p${site}` } },
        status: { nodes: GATEWAYS.filter(inSite(site)).map((name) => gateway(name, GATEWAYS.indexOf(name))) },
      }),
    ),
    sitePeerings: [],
    assignments: [1, 2].map((site) =>
      object('SiteGatewayPoolAssignment', `a${site}`, { spec: { sites: [`s${site}`], gatewayPools: [`p${site}`] } }),
    ),
    meshes: [],
    poolPeerings: [
      object('GatewayPoolPeering', 'wan', {
        spec: {
          gatewayPools: ['p1', 'p2'],
          tunnelProtocol: 'VXLAN',
          healthCheckSettings: HEALTH,
        },
      }),
    ],
  } as unknown as TopologyObjects;
};

/** The plan as the version before makes it: what has a node's own address comes out of no tunnel. */
const asBefore = (plan: KernelPlan): KernelPlan => {
  const { transitRoutes: _, nodeAddresses = [], senders, endpoints, ...rest } = plan;
  const former = { ...rest, endpoints: endpoints.filter(({ prefix }) => !nodeAddresses.includes(prefix)) };
  if (!senders) return former;
  const isOfPod = (block: string): boolean => !nodeAddresses.includes(block);
  return { ...former, senders: senders.map((one) => ({ ...one, sources: one.sources.filter(isOfPod) })) };
};

/** A process that is told things by lines, and tells some. */
interface Talk<T> {
  readonly pid: number;
  /** Takes the first thing told that is so, or waits for it. */
  take<Found extends T>(isSo: (told: T) => told is Found): Promise<Found>;
  /** Waits until the last thing told of a kind is so. */
  until<Kind extends T>(isOf: (told: T) => told is Kind, isSo: (told: Kind) => boolean): Promise<void>;
  say(line: object): void;
  end(): void;
}

const talkTo = <T>(child: ChildProcessWithoutNullStreams, what: string): Talk<T> => {
  const told: T[] = [];
  const errors: string[] = [];
  let failure: Error | undefined;
  let look = (): void => undefined;
  child.stderr.on('data', (data: Buffer) => void errors.push(String(data)));
  child.once('close', (status) => {
    failure = new Error(`${what} ended (${status}): ${errors.join('')}`);
    look();
  });
  createInterface({ input: child.stdout }).on('line', (line) => {
    told.push(JSON.parse(line) as T);
    look();
  });
  const found = <Found>(find: () => Found | undefined): Promise<Found> =>
    new Promise((resolve, reject) => {
      look = () => {
        const result = find();
        if (result !== undefined) resolve(result);
        else if (failure) reject(failure);
      };
      look();
    });
  return {
    pid: child.pid!,
    take: <Found extends T>(isSo: (told: T) => told is Found) =>
      found((): Found | undefined => {
        const index = told.findIndex(isSo);
        return index < 0 ? undefined : (told.splice(index, 1)[0] as Found);
      }),
    async until(isOf, isSo) {
      await found(() => {
        const last = told.findLast(isOf);
        return last && isSo(last) ? true : undefined;
      });
    },
    say: (line) => void child.stdin.write(`${JSON.stringify(line)}\n`),
    end: () => void child.kill('SIGKILL'),
  };
};

type Applied = Extract<NodeAnswer, { problems: readonly string[] }>;
type Seen = Extract<NodeAnswer, { healthy: readonly string[] }>;
type Led = Extract<NodeAnswer, { groups: readonly unknown[] }>;
const isSeen = (told: NodeAnswer): told is Seen => 'healthy' in told;
const isLed = (told: NodeAnswer): told is Led => 'groups' in told;
export const isApplied = (told: NodeAnswer): told is Applied => 'problems' in told;

export interface Lab {
  within(place: Place, ...argv: string[]): string;
  /** Every node applies its plan; those for which `isNew` is false as the version before does. */
  apply(isNew?: (node: NodeName) => boolean): Promise<Applied[]>;
  clean(node: NodeName): Promise<void>;
  /** Packets with a source that is not their sender's, as the node's eBPF program counts them. */
  forgedAt(node: NodeName): number;
  /**
   * Waits until a node sees all of its peers, and sends by each gateway of the nearest tier; or until it sees those named not any more.
   * A gateway that is healthy already may still deny a site: connections that are opened before would go another way afterwards.
   */
  sees(node: NodeName, how: { readonly gone: readonly NodeName[] } | 'all'): Promise<void>;
  /** As if its power went. */
  cutOff(node: NodeName): void;
  serve(place: Place, port: number): Promise<void>;
  flows(place: Place, to: { readonly host: string; readonly port: number }, count: number): Promise<TcpFlows>;
  close(): void;
}

const leadsByAllNearest = ({ members }: Led['groups'][number]): boolean => {
  const nearest = Math.min(...members.map(({ tier }) => tier));
  return members.every(({ tier, isActive }) => isActive || tier > nearest);
};

const makeNetwork = (): Record<Place, Netns> => {
  const places = [...NODES, 'lan1', 'lan2', 'wan', 'pod2'] as const;
  const ns = Object.fromEntries(places.map((place) => [place, createNetns()])) as Record<Place, Netns>;
  const run = (place: Place, line: string): string =>
    execFileSync('nsenter', [`--net=${ns[place].path}`, ...line.split(' ')], { encoding: 'utf8' });
  for (const hub of ['lan1', 'lan2', 'wan'] as const) run(hub, 'ip link add switch up type bridge mcast_snooping 0');
  for (const place of places) run(place, 'ip link set lo up');
  const join = (node: NodeName, hub: Hub, device: string, addresses: readonly string[]): void => {
    run(node, `ip link add ${device} type veth peer name ${node} netns ${ns[hub].path}`);
    run(hub, `ip link set ${node} master switch up`);
    for (const address of addresses)
      run(node, `ip addr add ${address} dev ${device}${address.includes(':') ? ' nodad' : ''}`);
    run(node, `ip link set ${device} up`);
  };
  for (const node of NODES) {
    join(node, `lan${siteOf(node)}` as Hub, 'eth0', [`${addressOf(node, 4)}/24`, `${addressOf(node, 6)}/64`]);
    if (GATEWAYS.includes(node)) join(node, 'wan', 'eth1', [`${externalOf(node)}/24`]);
  }
  return ns;
};

const addPod = (ns: Record<Place, Netns>): void => {
  const run = (place: Place, line: string): string =>
    execFileSync('nsenter', [`--net=${ns[place].path}`, ...line.split(' ')], { encoding: 'utf8' });
  run('w2', `ip link add veth2 type veth peer name eth0 netns ${ns.pod2.path}`);
  run('w2', 'ip link set veth2 master cbr0 up');
  run('pod2', 'ip link set eth0 up');
  run('pod2', `ip addr add ${POD[4]}/24 dev eth0`);
  run('pod2', `ip addr add ${POD[6]}/64 dev eth0 nodad`);
  run('pod2', `ip route add default via ${OVERLAY.w2[4]}`);
  run('pod2', `ip -6 route add default via ${OVERLAY.w2[6]}`);
};

export const startNode = (name: string, netns: Netns, args: NodeArgs): Talk<NodeAnswer> => {
  const scenario = join(import.meta.dirname, 'node-addresses.scenario.ts');
  const inside = ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', ENTER, ...agentCommand, scenario];
  return talkTo(spawn('nsenter', [`--net=${netns.path}`, ...inside, JSON.stringify(args)]), name);
};

/** The counter of the node whose process has the pid. */
const readForged = (pid: number): number => {
  const key = [STATS.indexOf('drop_forged_source'), 0, 0, 0].map(String);
  const argv = ['bpftool', '-j', 'map', 'lookup', 'pinned', `${PIN_FOLDER}/maps/unbounded_stats`, 'key', ...key];
  const shown = execFileSync('nsenter', ['--target', String(pid), '--mount', ...argv], { encoding: 'utf8' });
  const { formatted } = JSON.parse(shown) as { formatted: { values: { value: number }[] } };
  return formatted.values.reduce((sum, { value }) => sum + value, 0);
};

export const startLab = (dataplane: DataPathKind): Lab => {
  const ns = makeNetwork();
  const keys = Object.fromEntries(NODES.map((name) => [name, generatePrivateKey()])) as Record<NodeName, string>;
  const ending: { end(): void }[] = [];
  const nodes = new Map(NODES.map((name) => [name, startNode(name, ns[name], { dataplane, privateKey: keys[name] })]));
  let isNewNow: (node: NodeName) => boolean = () => true;
  const planOf = (node: NodeName): KernelPlan => {
    const world = parseWorld(objectsFor(keys, isNewNow));
    const member = findMember(world, node)!;
    const plan = renderPlan(dataplane, planNode(world, { member, underlayMtuBytes: 1500 }));
    return isNewNow(node) ? plan : asBefore(plan);
  };
  let hasPod = false;
  return {
    within: (place, ...argv) => execFileSync('nsenter', [`--net=${ns[place].path}`, ...argv], { encoding: 'utf8' }),
    async apply(isNew = () => true) {
      isNewNow = isNew;
      const applied = await Promise.all(
        NODES.map((name) => {
          nodes.get(name)!.say({ plan: planOf(name) } satisfies NodeRequest);
          return nodes.get(name)!.take(isApplied);
        }),
      );
      if (!hasPod) addPod(ns);
      hasPod = true;
      return applied;
    },
    async clean(node) {
      nodes.get(node)!.say({ clean: true } satisfies NodeRequest);
      await nodes.get(node)!.take(isApplied);
    },
    forgedAt: (node) => readForged(nodes.get(node)!.pid),
    async sees(node, how) {
      const told = nodes.get(node)!;
      if (how !== 'all') {
        const areGone = ({ unhealthy }: Seen): boolean =>
          how.gone.every((peer) => unhealthy.includes(`${peer} 4`) && unhealthy.includes(`${peer} 6`));
        return told.until(isSeen, areGone);
      }
      await told.until(isSeen, ({ healthy }) => healthy.length === planOf(node).probes.length);
      await told.until(isLed, ({ groups }) => groups.every(leadsByAllNearest));
    },
    cutOff(node) {
      for (const hub of [`lan${siteOf(node)}` as Hub, 'wan'] as const)
        execFileSync('nsenter', [`--net=${ns[hub].path}`, 'ip', 'link', 'set', node, 'down']);
    },
    async serve(place, port) {
      ending.push(await serveTcp(['nsenter', `--net=${ns[place].path}`], port));
    },
    async flows(place, to, count) {
      const flows = await openTcpFlows(['nsenter', `--net=${ns[place].path}`], { ...to, count });
      ending.push(flows);
      return flows;
    },
    close() {
      for (const one of [...ending, ...nodes.values()]) one.end();
      for (const one of Object.values(ns)) one.close();
    },
  };
};
