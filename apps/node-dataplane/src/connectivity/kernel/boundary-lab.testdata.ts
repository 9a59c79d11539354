import { execFileSync } from 'node:child_process';
import { CONNECTIVITY, MARK_MASK } from '@unbounded/config/ownership';
import { createNetns, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { serveTcp } from '@unbounded/testing/tcp-flows';
import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import type { DataPathKind, KernelPlan } from '../../data-path/kernel-plan.ts';
import { renderPlan } from '../../data-path/render.ts';
import { tableSpec } from '../../kernel/section-table.ts';
import { objectsFor } from '../../testdata.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import { planFirewall } from './firewall.plan.ts';

/**
 * A worker or a gateway of site 1 with our table: a pod on its bridge, hosts on its LAN (`eth0`) and on the WAN (`eth1`, to which the
 * default route leads), and the other site behind a veth in the place of a tunnel: what has been checked and decapsulated comes out of it.
 */

export type Protocol = Parameters<typeof objectsFor>[0];
export type Place = 'pod' | 'lan' | 'wan' | 'far';
type Namespace = Place | 'node';

/** Of both families. */
export const HOSTS = {
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

const ROLES = { worker: { name: 'w1', host: 30 }, gateway: { name: 'g1', host: 20 } } as const;
export type Role = keyof typeof ROLES;

export interface LabOptions {
  readonly role: Role;
  readonly protocol: Protocol;
  readonly dataplane: DataPathKind;
  /** Of the Site; the fields are added to its spec. */
  readonly site?: object;
}

const inBothFamilies = (objects: TopologyObjects, protocol: Protocol, site: object): TopologyObjects => {
  const text = JSON.stringify(objects, (key, value: unknown) => {
    const add = (more: (text: string) => string): string[] => (value as string[]).flatMap((own) => [own, more(own)]);
    const parts = (own: string): string[] => own.split('.');
    if (key === 'nodeCidrs') return add((own) => `fd00:${parts(own)[1]}::/64`);
    if (key === 'cidrBlocks') return add((own) => `fd64:${parts(own)[1]}::/32`);
    if (key === 'internalIPs') return add((own) => `fd00:${parts(own)[1]}::${parts(own)[3]}`);
    if (key === 'podCIDRs') return add((own) => `fd64:${parts(own)[1]}:${parts(own)[2]}::/64`);
    return value;
  });
  const both = JSON.parse(text) as TopologyObjects;
  return {
    ...both,
    sites: both.sites.map((one) => ({ ...one, spec: { ...one.spec, ...site } })),
    gatewayPools: both.gatewayPools.map((pool, index) =>
      index === 0 ? { ...pool, spec: { ...pool.spec, routedCidrs: ['10.9.0.0/16', 'fd00:9::/64'] } } : pool,
    ),
    // Without a tunnel inside the site there is still one between the sites.
    poolPeerings: both.poolPeerings.map((peering) => ({
      ...peering,
      spec: { ...peering.spec, tunnelProtocol: protocol === 'None' ? 'WireGuard' : protocol },
    })),
  };
};

export const planOf = ({ role, protocol, dataplane, site = {} }: LabOptions): KernelPlan => {
  const world = parseWorld(inBothFamilies(objectsFor(protocol), protocol, site));
  const member = findMember(world, ROLES[role].name)!;
  return renderPlan(dataplane, planNode(world, { member, underlayMtuBytes: 1500 }));
};

/** By which packets of the other site come in. */
const tunnelOf = (plan: KernelPlan): string => plan.tunnels[0]?.device ?? plan.wireGuard[0]?.name ?? 'vxlan0';

/** Packets of shots, and errors about them, before anything of ours sees them; at the node those for itself. */
const watchAt = (place: Namespace): string => `table inet watch {
  counter arrived { }
  counter errors { }
  counter marked { }
  chain out { type filter hook postrouting priority 350; meta l4proto { tcp, udp } meta mark & ${MARK_MASK} != 0 counter name marked; }
  chain c {
    type filter hook ${place === 'node' ? 'input' : 'prerouting'} priority -350;
    meta l4proto { tcp, udp } th dport ${PORT} counter name arrived
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

/** PROTOCOL TO PORT FROM BYTES; from any address. */
const SEND = `use Socket qw(:all);
my ($type, $to, $port, $from, $bytes) = @ARGV;
my @of = $type eq "tcp" ? (SOCK_STREAM, 6) : (SOCK_DGRAM, 17);
my $hints = { flags => AI_NUMERICHOST, socktype => $of[0] };
my ($x, $at) = getaddrinfo($to, $port, $hints); my ($y, $own) = getaddrinfo($from, 0, $hints);
socket(my $s, $at->{family}, $of[0], $of[1]) or die $!;
my @any = $at->{family} == AF_INET ? (0, 19) : (41, 75);
setsockopt($s, $any[0], $any[1], 1) or die $!; # IP_TRANSPARENT, IPV6_TRANSPARENT
bind($s, $own->{addr}) or die "$from: $!";
if ($type eq "tcp") { use Fcntl; fcntl($s, F_SETFL, O_NONBLOCK); connect($s, $at->{addr}); exit; }
send($s, "x" x $bytes, 0, $at->{addr}) or $!{EPERM} or die $!;`;
/** Prints the address from which the server sees it come. */
const ASK = `use IO::Socket::IP;
my $s = IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], LocalHost => $ARGV[2], Timeout => 5) or die "no answer: $@ $!";
print scalar <$s>;`;

export interface Shot {
  readonly from: Place;
  readonly source: string;
  readonly to: string;
  readonly port?: number;
  readonly type?: 'udp' | 'tcp';
  readonly bytes?: number;
}

export interface BoundaryLab {
  readonly plan: KernelPlan;
  /** The node's own addresses, of its pod and, for those who are beside it, at its interfaces. */
  readonly own: Readonly<Record<'node' | 'pod' | 'external', Readonly<Record<Family, string>>>>;
  apply(plan: KernelPlan, additions?: readonly BoundaryAdditions[]): Promise<void>;
  /** One packet; where it arrived, if it did. */
  shoot(shot: Shot): Promise<Namespace[]>;
  /** Over TCP: whom the server sees. @throws Error without an answer */
  ask(shot: Pick<Shot, 'from' | 'source' | 'to' | 'port'>): string;
  /** ICMP errors that arrived there. */
  errors(place: Place): Promise<number>;
  dropped(reason: string): Promise<number>;
  /** Packets that left the node with a mark of ours. */
  marked(): Promise<number>;
  close(): void;
}

export const openBoundaryLab = async (options: LabOptions): Promise<BoundaryLab> => {
  const plan = planOf(options);
  const { host } = ROLES[options.role];
  const places = ['pod', 'lan', 'wan', 'far'] as const;
  const namespaces = [...places, 'node'] as const;
  const ns = Object.fromEntries(namespaces.map((name) => [name, createNetns()])) as Record<Namespace, Netns>;
  const run = (place: Namespace, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${ns[place].path}`, ...argv], { encoding: 'utf8' });
  const ip = (place: Namespace, line: string): void => void run(place, 'ip', ...line.split(' '));
  const load = (place: Namespace, input: string): void =>
    void execFileSync('nsenter', [`--net=${ns[place].path}`, 'nft', '-f', '-'], { input });
  const add = (place: Namespace, device: string, addresses: readonly string[], lengths = [24, 64]): void =>
    addresses.forEach((address, index) =>
      ip(place, `addr add ${address}/${lengths[index]} dev ${device}${index === 1 ? ' nodad' : ''}`),
    );
  const own = {
    node: { 4: `10.1.0.${host}`, 6: `fd00:1::${host}` },
    pod: { 4: `100.65.${host}.9`, 6: `fd64:65:${host}::9` },
    external: { 4: '203.0.113.30', 6: '2001:db8:113::30' },
  };
  const link = (device: string, place: Place, end: string): void => {
    ip('node', `link add ${device} type veth peer name ${end} netns ${ns[place].path}`);
    ip('node', `link set ${device} up`);
    ip(place, `link set ${end} up`);
  };
  for (const place of namespaces) ip(place, 'link set lo up');
  for (const key of ['net.ipv4.ip_forward', 'net.ipv6.conf.all.forwarding']) run('node', 'sysctl', '-qw', `${key}=1`);
  link('eth0', 'lan', 'eth0');
  link('eth1', 'wan', 'eth0');
  ip('node', 'link add cbr0 up type bridge mcast_snooping 0');
  link('veth1', 'pod', 'eth0');
  ip('node', 'link set veth1 master cbr0');
  add('node', 'cbr0', [`100.65.${host}.1`, `fd64:65:${host}::1`]);
  add('pod', 'eth0', [own.pod[4], own.pod[6]]);
  add('node', 'eth0', [own.node[4], own.node[6]]);
  add('lan', 'eth0', ['10.1.0.254', 'fd00:1::254']);
  add('node', 'eth1', [own.external[4], own.external[6]]);
  add('wan', 'eth0', ['203.0.113.254', '2001:db8:113::254']);
  const tunnel = tunnelOf(plan);
  const anchor = options.dataplane === 'ebpf' ? 'unbounded0' : tunnel;
  for (const device of new Set([tunnel, anchor])) {
    link(device, 'far', device);
    const third = device === tunnel ? 1 : 2;
    add('node', device, [`192.0.2.${third * 4 + 1}`, `2001:db8:f:${third}::1`], [30, 64]);
    add('far', device, [`192.0.2.${third * 4 + 2}`, `2001:db8:f:${third}::2`], [30, 64]);
  }
  for (const place of ['lan', 'wan', 'far'] as const)
    for (const name of BEHIND[place]) add(place, 'lo', HOSTS[name], [32, 128]);
  const routes = (place: Namespace, hosts: readonly (readonly string[])[], via: readonly string[]): void =>
    hosts.forEach((pair) =>
      FAMILIES.forEach((family, index) => ip(place, `-${family} route add ${pair[index]} via ${via[index]}`)),
    );
  const third = anchor === tunnel ? 1 : 2;
  const isNative = plan.tunnels.length + plan.wireGuard.length === 0;
  const overlay = isNative ? ['10.1.0.254', 'fd00:1::254'] : [`192.0.2.${third * 4 + 2}`, `2001:db8:f:${third}::2`];
  routes(
    'node',
    [
      ['100.66.0.0/16', 'fd64:66::/32'],
      ['10.2.0.0/24', 'fd00:2::/64'],
    ],
    overlay,
  );
  if (options.protocol === 'None')
    routes('node', [['100.65.31.0/24', 'fd64:65:31::/64']], ['10.1.0.254', 'fd00:1::254']);
  routes(
    'node',
    BEHIND.lan.filter((name) => name !== 'nearPod').map((name) => HOSTS[name]),
    ['10.1.0.254', 'fd00:1::254'],
  );
  routes('node', [['10.9.0.0/16', 'fd00:9::/64']], ['10.1.0.254', 'fd00:1::254']);
  const everywhere = [['default', 'default']] as const;
  routes('node', everywhere, ['203.0.113.254', '2001:db8:113::254']);
  routes('pod', everywhere, [`100.65.${host}.1`, `fd64:65:${host}::1`]);
  routes('lan', everywhere, [own.node[4], own.node[6]]);
  routes('wan', everywhere, [own.external[4], own.external[6]]);
  routes('far', everywhere, ['192.0.2.5', '2001:db8:f:1::1']);
  // Until everybody beside the node answers: no shot waits for a neighbor.
  const beside = [own.pod, { 4: '10.1.0.254', 6: 'fd00:1::254' }, { 4: '203.0.113.254', 6: '2001:db8:113::254' }];
  const neighbors = [...beside.flatMap((one) => [one[4], one[6]]), '192.0.2.6', '2001:db8:f:1::2', ...overlay];
  for (const address of neighbors) run('node', 'ping', '-c', '1', '-w', '5', '-i', '0.05', address);
  for (const place of namespaces) load(place, watchAt(place));
  load('node', serviceRules([own.pod[4], own.pod[6]]));
  const servers = await Promise.all(places.map((place) => serveTcp(['nsenter', `--net=${ns[place].path}`], PORT)));
  const nfts = new Map(namespaces.map((place) => [place, createNftables({ netnsFd: ns[place].fd })]));
  const nft = nfts.get('node')!;
  const apply: BoundaryLab['apply'] = (wanted, additions = []) =>
    nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(wanted, { additions, present: [tunnel, anchor] })));
  await apply(plan);
  const counted = async (place: Namespace, counter: 'arrived' | 'errors' | 'marked'): Promise<number> =>
    (await nfts.get(place)!.readCounters('inet', 'watch')).find(({ name }) => name === counter)!.packets;
  const arrivals = (): Promise<number[]> => Promise.all(namespaces.map((place) => counted(place, 'arrived')));
  return {
    plan,
    own,
    apply,
    async shoot({ from, source, to, port = PORT, type = 'udp', bytes = 100 }) {
      const before = await arrivals();
      run(from, 'perl', '-e', SEND, type, to, String(port), source, String(bytes));
      const after = await arrivals();
      return namespaces.filter((_, index) => after[index]! > before[index]!);
    },
    ask: ({ from, source, to, port = PORT }) => run(from, 'perl', '-e', ASK, to, String(port), source).trim(),
    marked: () => counted('node', 'marked'),
    errors: (place) => counted(place, 'errors'),
    dropped: async (reason) =>
      (await nft.readCounters('inet', 'unbounded')).find(({ name }) => name === reason)!.packets,
    close() {
      for (const server of servers) server.end();
      for (const one of nfts.values()) one.close();
      for (const one of Object.values(ns)) one.close();
    },
  };
};
