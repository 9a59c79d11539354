import { execFileSync } from 'node:child_process';
import { MARK_MASK } from '@unbounded/config/ownership';
import { ECHO_PORTS } from '@unbounded/health';
import { createNetns, type Netns } from '@unbounded/netlink';
import { DEVICES } from '../../data-path/devices.ts';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { applyNetworkLines, learnNeighbors, type NetworkLine } from '../../kernel/network-lines.testdata.ts';

/**
 * The network of boundary-lab.testdata.ts: a node between a LAN (`eth0`), the WAN (`eth1`, the default route), its pod and the other site,
 * which is behind a veth in the place of a tunnel. Behind another, in the place of the TUN, is what reads the node's own echoes.
 */

export type Place = 'pod' | 'lan' | 'wan' | 'far' | 'echo';
export type Namespace = Place | 'node';
export const PLACES = ['pod', 'lan', 'wan', 'far', 'echo'] as const;
export const NAMESPACES = [...PLACES, 'node'] as const;

/** Of both families. */
const HOSTS = {
  farPod: ['100.66.20.9', 'fd64:66:20::9'],
  farNode: ['10.2.0.31', 'fd00:2::31'],
  /** Whose packets go on from the other site. */
  fartherPod: ['100.66.77.7', 'fd64:66:77::7'],
  nearNode: ['10.1.0.31', 'fd00:1::31'],
  nearPod: ['100.65.31.7', 'fd64:65:31::7'],
  router: ['10.1.0.1', 'fd00:1::1'],
  stranger: ['10.1.0.77', 'fd00:1::77'],
  listed: ['10.1.0.99', 'fd00:1::99'],
  routed: ['10.9.0.5', 'fd00:9::5'],
  /** Where clouds have their metadata services. */
  metadata: ['169.254.169.254', 'fd00:ec2::254'],
  internet: ['198.51.100.9', '2001:db8:51::9'],
} as const;
export type Host = keyof typeof HOSTS;
const BEHIND: Readonly<Record<'lan' | 'wan' | 'far', readonly Host[]>> = {
  lan: ['nearNode', 'nearPod', 'router', 'stranger', 'listed', 'routed'],
  wan: ['internet', 'metadata'],
  far: ['farPod', 'farNode'],
};
export const FAMILIES = [4, 6] as const;
export type Family = (typeof FAMILIES)[number];
export const addressOf = (host: Host, family: Family): string => HOSTS[host][family === 4 ? 0 : 1];

/** Ports at which the node translates, as kube-proxy does: to a pod of its own, to one behind the overlay, and to a near node. */
export const NODE_PORTS = { local: 30_001, far: 30_002, near: 30_003 } as const;
export const PORT = 7000;

type Pair = Readonly<Record<Family, string>>;
export interface OwnAddresses {
  readonly node: Pair;
  readonly pod: Pair;
  readonly echo: Pair;
  readonly external: Pair;
}
/** @param host the last number of the node's address, and the third of its pods' */
export const ownAddresses = (host: number): OwnAddresses => ({
  node: { 4: `10.1.0.${host}`, 6: `fd00:1::${host}` },
  pod: { 4: `100.65.${host}.9`, 6: `fd64:65:${host}::9` },
  echo: { 4: `100.65.${host}.0`, 6: `fd64:65:${host}:0:ffff:ffff:ffff:ffff` },
  external: { 4: '203.0.113.30', 6: '2001:db8:113::30' },
});

/** By which packets of the other site come in. */
const tunnelOf = (plan: KernelPlan): string => plan.tunnels[0]?.device ?? plan.wireGuard[0]?.name ?? 'vxlan0';

/**
 * Packets of shots, and errors about them, before anything of ours sees them; at the node those for itself. Of TCP a shot is a first segment or
 * an answer to one: the end of a connection of before may come late.
 */
const watchAt = (place: Namespace): string => `table inet watch {
  counter arrived { }
  counter errors { }
  counter marked { }
  chain out { type filter hook postrouting priority 350; meta l4proto { tcp, udp } meta mark & ${MARK_MASK} != 0 counter name marked; }
  chain c {
    type filter hook ${place === 'node' ? 'input' : 'prerouting'} priority -350;
    udp dport { ${PORT}, ${ECHO_PORTS.destination} } counter name arrived
    tcp dport { ${PORT}, ${ECHO_PORTS.destination} } tcp flags & syn != 0 counter name arrived
    icmp type destination-unreachable counter name errors
    icmpv6 type destination-unreachable counter name errors
  }
}`;
/** As kube-proxy: policy Local keeps the client's address, policy Cluster masquerades. */
const serviceRules = (pod: readonly string[]): string => `table inet service {
  chain pre {
    type nat hook prerouting priority dstnat;
    ${Object.entries({ local: pod, far: HOSTS.farPod, near: HOSTS.nearNode })
      .map(([name, [v4, v6]]) => {
        const match = `meta l4proto { tcp, udp } th dport ${NODE_PORTS[name as keyof typeof NODE_PORTS]}${name === 'local' ? '' : ' meta mark set meta mark | 0x4000'}`;
        return `${match} dnat ip to ${v4}:${PORT}; ${match} dnat ip6 to [${v6}]:${PORT};`;
      })
      .join('\n    ')}
  }
  chain post {
    type nat hook postrouting priority srcnat;
    meta mark & 0x4000 == 0x4000 masquerade
  }
}`;

type Line = NetworkLine<Namespace>;
type Texts = readonly [v4: string, v6: string];

const addresses = (place: Namespace, device: string, texts: Texts, lengths = [24, 64]): Line[] =>
  texts.map((text, index) => [place, `addr add ${text}/${lengths[index]} dev ${device}${index === 1 ? ' nodad' : ''}`]);
const routes = (place: Namespace, to: readonly Texts[], via: Texts): Line[] =>
  to.flatMap((pair) => FAMILIES.map((_, index): Line => [place, `route add ${pair[index]} via ${via[index]}`]));
const wire = (device: string, place: Place, end: string): Line[] => [
  ['node', `link add ${device} type veth peer name ${end} netns ${place}`],
  ['node', `link set ${device} up`],
  [place, `link set ${end} up`],
];
const texts = (pair: Pair): Texts => [pair[4], pair[6]];

/** Native neighbor of the node, in whose network the hosts of the LAN are. */
export const LAN_ROUTER: Texts = ['10.1.0.254', 'fd00:1::254'];
const WAN_ROUTER: Texts = ['203.0.113.254', '2001:db8:113::254'];
const EVERYWHERE: readonly Texts[] = [['default', 'default']];
/** Of the veth in the place of the tunnel, and of that in the place of the anchor, if it is another. */
const TRANSFER = [
  { node: ['192.0.2.1', '2001:db8:f:1::1'], far: ['192.0.2.2', '2001:db8:f:1::2'] },
  { node: ['192.0.2.5', '2001:db8:f:2::1'], far: ['192.0.2.6', '2001:db8:f:2::2'] },
] as const;
/** Of the one in the place of the TUN. */
const TO_ECHO: { readonly node: Texts; readonly end: Texts } = {
  node: ['192.0.2.9', '2001:db8:f:3::1'],
  end: ['192.0.2.10', '2001:db8:f:3::2'],
};

const BRIDGE_MAC = '02:00:00:00:00:01';

export interface Devices {
  /** By which packets of the other site come in. */
  readonly tunnel: string;
  /** By which they leave. */
  readonly anchor: string;
}
export const devicesOf = (plan: KernelPlan): Devices => {
  const tunnel = tunnelOf(plan);
  return { tunnel, anchor: plan.dataplane === 'ebpf' ? 'unbounded0' : tunnel };
};

const overlayVia = (plan: KernelPlan, { tunnel, anchor }: Devices): Texts => {
  if (plan.tunnels.length + plan.wireGuard.length === 0) return LAN_ROUTER;
  return TRANSFER[tunnel === anchor ? 0 : 1].far;
};

const linksOf = (devices: Devices, own: OwnAddresses): Line[] => {
  const gateway: Texts = [own.pod[4].replace(/9$/, '1'), own.pod[6].replace(/9$/, '1')];
  return [
    ...NAMESPACES.map((place): Line => [place, 'link set lo up']),
    ...wire('eth0', 'lan', 'eth0'),
    ...wire('eth1', 'wan', 'eth0'),
    ['node', `link add cbr0 address ${BRIDGE_MAC} up type bridge mcast_snooping 0`],
    ...wire('veth1', 'pod', 'eth0'),
    ['node', 'link set veth1 master cbr0'],
    ...addresses('node', 'cbr0', gateway),
    ...addresses('pod', 'eth0', texts(own.pod)),
    // To every pod it is on link, where nobody has it: one that gets it to the node all the same has to make that up.
    ...texts(own.echo).map((text): Line => ['pod', `neigh add ${text} lladdr ${BRIDGE_MAC} dev eth0`]),
    ...addresses('node', 'eth0', texts(own.node)),
    ...addresses('lan', 'eth0', LAN_ROUTER),
    ...addresses('node', 'eth1', texts(own.external)),
    ...addresses('wan', 'eth0', WAN_ROUTER),
    ...[...new Set([devices.tunnel, devices.anchor])].flatMap((device, index) => [
      ...wire(device, 'far', device),
      ...addresses('node', device, TRANSFER[index]!.node, [30, 64]),
      ...addresses('far', device, TRANSFER[index]!.far, [30, 64]),
    ]),
    ...wire(DEVICES.echo, 'echo', 'eth0'),
    ...addresses('node', DEVICES.echo, TO_ECHO.node, [30, 64]),
    ...addresses('echo', 'eth0', TO_ECHO.end, [30, 64]),
    ...(['lan', 'wan', 'far'] as const).flatMap((place) =>
      BEHIND[place].flatMap((name) => addresses(place, 'lo', HOSTS[name], [32, 128])),
    ),
    ...routes('pod', EVERYWHERE, gateway),
  ];
};

const routesOf = (plan: KernelPlan, devices: Devices, own: OwnAddresses): Line[] => {
  const beside = BEHIND.lan.filter((name) => name !== 'nearPod').map((name): Texts => HOSTS[name]);
  const nearPods: Texts[] =
    plan.tunnels.length === 0 && plan.alsoPlain === undefined ? [['100.65.31.0/24', 'fd64:65:31::/64']] : [];
  const far: Texts[] = [
    ['100.66.0.0/16', 'fd64:66::/32'],
    ['10.2.0.0/24', 'fd00:2::/64'],
  ];
  return [
    ...routes('node', far, overlayVia(plan, devices)),
    ...routes('node', [...nearPods, ...beside, ['10.9.0.0/16', 'fd00:9::/64']], LAN_ROUTER),
    ...routes('node', EVERYWHERE, WAN_ROUTER),
    ...routes('lan', EVERYWHERE, texts(own.node)),
    ...routes('wan', EVERYWHERE, texts(own.external)),
    ...routes('far', EVERYWHERE, TRANSFER[0].node),
    ...routes('node', [texts(own.echo)], TO_ECHO.end),
    ...routes('echo', EVERYWHERE, TO_ECHO.node),
  ];
};

export interface BoundaryNetwork {
  readonly ns: Readonly<Record<Namespace, Netns>>;
  close(): void;
}

export const makeBoundaryNetwork = (plan: KernelPlan, devices: Devices, own: OwnAddresses): BoundaryNetwork => {
  // The node first: it makes the links.
  const ns = Object.fromEntries((['node', ...PLACES] as const).map((name) => [name, createNetns()])) as Record<
    Namespace,
    Netns
  >;
  const inside = (place: Namespace, argv: readonly string[], input = ''): void =>
    void execFileSync('nsenter', [`--net=${ns[place].path}`, ...argv], { input });
  inside('node', ['sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1']);
  applyNetworkLines(ns, [...linksOf(devices, own), ...routesOf(plan, devices, own)]);
  const transfer = devices.tunnel === devices.anchor ? TRANSFER.slice(0, 1) : TRANSFER;
  const neighbors = [
    ...texts(own.pod),
    ...LAN_ROUTER,
    ...WAN_ROUTER,
    ...TO_ECHO.end,
    ...transfer.flatMap(({ far }) => far),
  ];
  learnNeighbors(ns.node, neighbors);
  for (const place of NAMESPACES)
    inside(place, ['nft', '-f', '-'], watchAt(place) + (place === 'node' ? `\n${serviceRules(texts(own.pod))}` : ''));
  return {
    ns,
    close() {
      for (const one of Object.values(ns)) one.close();
    },
  };
};
