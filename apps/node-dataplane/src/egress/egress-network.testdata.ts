import { execFileSync, spawnSync } from 'node:child_process';
import { DEVICES, NFT_TABLE } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns, type RouteSocket } from '@unbounded/netlink';
import { createNftables, type Nftables } from '@unbounded/nftables';
import { silentLogger as logger } from '@unbounded/telemetry';
import { type PerlServer, startPerl } from '@unbounded/testing/perl-server';
import { planOf } from '../connectivity/kernel/boundary-lab.testdata.ts';
import { planFirewall } from '../connectivity/kernel/firewall.plan.ts';
import type { KernelPlan } from '../data-path/kernel-plan.ts';
import { EGRESS_CHAINS } from '../kernel/base-chains.ts';
import { watchDrops } from '../kernel/dropped-packets.testdata.ts';
import { applyNetworkLines, learnNeighbors, type NetworkLine } from '../kernel/network-lines.testdata.ts';
import { createSectionTable, type SectionTable, tableSpec } from '../kernel/section-table.ts';
import { EGRESS_DROPS, FENCE_DROP } from './plan/names.ts';

/**
 * A worker with two pods, a gateway with one, and a partner on their LAN. Connectivity's tables are those of real plans; a veth is in the
 * place of the tunnel between the nodes.
 */

export type Place = 'pod' | 'other' | 'worker' | 'gateway' | 'gatewayPod' | 'partner';
/** Those that make links to others first. */
const PLACES = ['partner', 'worker', 'gateway', 'pod', 'other', 'gatewayPod'] as const;
type Pair = readonly [v4: string, v6: string];

export const ADDRESSES = {
  pod: ['100.65.30.9', 'fd64:65:30::9'],
  other: ['100.65.30.8', 'fd64:65:30::8'],
  worker: ['10.1.0.30', 'fd00:1::30'],
  gateway: ['10.1.0.20', 'fd00:1::20'],
  gatewayPod: ['100.65.20.9', 'fd64:65:20::9'],
  partner: ['10.1.0.99', 'fd00:1::99'],
  /** Of the partner, too. */
  elsewhere: ['198.51.100.7', '2001:db8:51::7'],
  /** That the worker and the gateway have in the overlay. */
  workerOverlay: ['100.65.30.1', 'fd64:65:30::1'],
  gatewayOverlay: ['100.65.20.1', 'fd64:65:20::1'],
  /** Egress addresses. */
  first: ['10.1.0.200', 'fd00:1::200'],
  second: ['10.1.0.201', 'fd00:1::201'],
} as const satisfies Record<string, Pair>;
export type Host = keyof typeof ADDRESSES;
export const FAMILIES = [4, 6] as const;
export type Family = (typeof FAMILIES)[number];
export const addressOf = (host: Host, family: Family): string => ADDRESSES[host][family === 4 ? 0 : 1];

const TRANSFER = {
  worker: ['192.0.2.1', '2001:db8:f::1'],
  gateway: ['192.0.2.2', '2001:db8:f::2'],
} as const satisfies Record<string, Pair>;

export const PORT = 7000;
const LENGTHS = [24, 64] as const;

type Line = NetworkLine<Place>;

const has = (place: Place, device: string, pair: Pair, lengths: readonly [number, number] = LENGTHS): Line[] =>
  pair.map((text, index) => [place, `addr add ${text}/${lengths[index]} dev ${device}${index === 1 ? ' nodad' : ''}`]);
const route = (place: Place, to: Pair, via: Pair): Line[] =>
  to.map((text, index) => [place, `route add ${text} via ${via[index]}`]);

const EVERYWHERE: Pair = ['default', 'default'];
/** Port of a bridge. */
const port = (place: Place, bridge: string, name: string, to: Place): Line[] => [
  [place, `link add ${name} type veth peer name eth0 netns ${to}`],
  [place, `link set ${name} master ${bridge} up`],
  [to, 'link set eth0 up'],
];

/** The partner is the switch of the LAN. */
const LINES: readonly Line[] = [
  ...PLACES.map((place): Line => [place, 'link set lo up']),
  ['partner', 'link add lan address 02:00:00:00:00:99 up type bridge mcast_snooping 0'],
  ...port('partner', 'lan', 'to-worker', 'worker'),
  ...port('partner', 'lan', 'to-gateway', 'gateway'),
  ...has('partner', 'lan', ADDRESSES.partner),
  ...has('partner', 'lo', ADDRESSES.elsewhere, [32, 128]),
  ['partner', `route add 100.65.0.0/16 via ${ADDRESSES.gateway[0]}`],
  ...has('worker', 'eth0', ADDRESSES.worker),
  ...has('gateway', 'eth0', ADDRESSES.gateway),
  ['worker', `link add ${DEVICES.VXLAN} mtu 1450 type veth peer name ${DEVICES.VXLAN} netns gateway`],
  ...(['worker', 'gateway'] as const).flatMap((node): Line[] => [
    [node, `link set ${DEVICES.VXLAN} mtu 1450 up`],
    ...has(node, DEVICES.VXLAN, TRANSFER[node], [30, 64]),
    ...has(node, DEVICES.VXLAN, ADDRESSES[`${node}Overlay`], [32, 128]),
    [node, `link add ${DEVICES.bridge} address 02:00:00:00:00:01 mtu 1450 up type bridge mcast_snooping 0`],
    ...has(node, DEVICES.bridge, ADDRESSES[`${node}Overlay`]),
    ...route(node, EVERYWHERE, ADDRESSES.partner),
  ]),
  ...route('worker', ['100.65.20.0/24', 'fd64:65:20::/64'], TRANSFER.gateway),
  ...route('gateway', ['100.65.30.0/24', 'fd64:65:30::/64'], TRANSFER.worker),
  ...port('worker', DEVICES.bridge, 'veth1', 'pod'),
  ...port('worker', DEVICES.bridge, 'veth2', 'other'),
  ...port('gateway', DEVICES.bridge, 'veth1', 'gatewayPod'),
  ...(['pod', 'other'] as const).flatMap((pod) => [
    ...has(pod, 'eth0', ADDRESSES[pod]),
    ...route(pod, EVERYWHERE, ADDRESSES.workerOverlay),
  ]),
  ...has('gatewayPod', 'eth0', ADDRESSES.gatewayPod),
  ...route('gatewayPod', EVERYWHERE, ADDRESSES.gatewayOverlay),
  ...(['pod', 'other', 'gatewayPod'] as const).map((pod): Line => [pod, 'link set eth0 mtu 1450']),
];

/** Packets as they leave a node, by their sources, and those with a mark of ours. */
const WATCH = `table netdev watch {
  set sources { type ipv4_addr; flags dynamic; }
  set sources6 { type ipv6_addr; flags dynamic; }
  counter marked { }
  chain tunnel { type filter hook egress device ${DEVICES.VXLAN} priority 0; meta mark & 0xf0 != 0 counter name marked; }
  chain out {
    type filter hook egress device eth0 priority 0;
    meta mark & 0xf0 != 0 counter name marked
    ip protocol { tcp, udp, icmp } add @sources { ip saddr }
    ip6 nexthdr { tcp, udp } add @sources6 { ip6 saddr }
    icmpv6 type echo-request add @sources6 { ip6 saddr }
  }
}`;

/**
 * `ask` TO PORT SECONDS: the address by which a server answers which client it sees; or `send` TO PORT FROM-PORT: one datagram from a port of
 * its own, so that a second one is of the same connection.
 */
const CLIENT = `use IO::Socket::IP; use Time::HiRes "ualarm";
# Never one of before, as the kernel takes them: the node may know the connection still, from before a rule, and then drops it.
my $source = 10000;
sub answer { my $what = shift; $what eq "ask" ? question(@_) : $what eq "send" ? datagram(@_) : settle() }
sub settle {
  for (;;) {
    open(my $all, "<", "/proc/self/net/if_inet6") or die $!;
    grep { hex((split)[4]) & 0x40 } <$all> or return; # IFA_F_TENTATIVE
    select(undef, undef, undef, 0.02);
  }
}
sub question {
  my ($to, $port, $seconds) = @_;
  local $SIG{ALRM} = sub { die "late" };
  my $seen = eval {
    ualarm(1e6 * $seconds); # also where a connection is made and no answer comes
    my $s = IO::Socket::IP->new(PeerHost => $to, PeerPort => $port, LocalPort => $source++) or die "no connection";
    my $line = <$s> // "";
    ualarm(0);
    finish($s);
    $line;
  } // "none";
  ualarm(0);
  chomp $seen;
  return $seen;
}
# What ends the connection has left before the answer is told: none of it leaves during a later test.
sub finish {
  my $s = shift;
  local $SIG{ALRM} = sub { die "late" };
  eval { alarm 10; shutdown($s, 1); 1 while sysread($s, my $rest, 4096); };
  alarm 0;
}
sub datagram {
  my ($to, $port, $from) = @_;
  my $s = IO::Socket::IP->new(PeerHost => $to, PeerPort => $port, LocalPort => $from, Proto => "udp", Type => SOCK_DGRAM) or die $@;
  $s->send("x");
  return;
}`;

interface EgressNode {
  readonly plan: KernelPlan;
  readonly net: RouteSocket;
  readonly nft: Nftables;
  readonly table: (family: 'inet' | 'ip' | 'ip6' | 'arp') => SectionTable;
  /** Dropped by egress, by reason, as the agent's metric has it. */
  drops(family?: 'inet' | 'ip' | 'ip6'): Promise<Readonly<Record<string, number>>>;
}

export interface EgressNetwork {
  readonly ns: Readonly<Record<Place, Netns>>;
  readonly nodes: Readonly<Record<'worker' | 'gateway', EgressNode>>;
  run(place: Place, ...argv: string[]): string;
  /** What it prints, however it ends. */
  output(place: Place, ...argv: string[]): string;
  input(place: Place, argv: readonly string[], text: string): string;
  /**
   * Whom a server of TCP sees; 'none' without an answer within the time.
   * @throws Error with what decides about packets, if no time was given and there is no answer
   */
  ask(from: Place, to: string, timeoutSeconds?: number, port?: number): Promise<string>;
  /** A datagram from this port. */
  send(from: Place, to: string, sourcePort: number): Promise<void>;
  /** Sources of what has left the node by its uplink since the last call. */
  sources(node: 'worker' | 'gateway'): string[];
  /** Packets that left the node with a mark of ours. */
  marked(node: 'worker' | 'gateway'): number;
  close(): Promise<void>;
}

const openNode = async (ns: Netns, role: 'worker' | 'gateway'): Promise<EgressNode> => {
  const plan = planOf({ role, protocol: 'VXLAN', dataplane: 'netlink' });
  const [net, nft] = [createRouteSocket({ netnsFd: ns.fd }), createNftables({ netnsFd: ns.fd })];
  const additions = [{ devices: [DEVICES.egress] }];
  await nft.replaceTable(tableSpec('connectivity', planFirewall(plan, { additions, present: [DEVICES.VXLAN] })));
  const baseChains = Object.values(EGRESS_CHAINS);
  const tables = new Map(
    (['inet', 'ip', 'ip6', 'arp'] as const).map((family) => [
      family,
      createSectionTable({ nft, section: 'egress', family, baseChains, logger }),
    ]),
  );
  return {
    plan,
    net,
    nft,
    table: (family) => tables.get(family)!,
    drops(family = 'inet') {
      const drops = [...Object.values(EGRESS_DROPS), FENCE_DROP];
      return watchDrops(nft, { family, name: `${NFT_TABLE}_egress`, drops }).all();
    },
  };
};

/** Of every place, for who reads why there was no answer. */
const stateOf = (run: EgressNetwork['run']): string =>
  PLACES.map((place) => {
    const show = 'ip -s neigh; ip -o addr show dev eth0; ss -tanoi; nstat -as | grep -E "Drop|Retrans|Fail|Listen"';
    const ofNode =
      'conntrack -L 2>/dev/null; nft list counters | grep -B1 "packets [1-9]"; nft list ruleset | grep -E "^table|set .* {|elements"';
    const isNode = place === 'worker' || place === 'gateway';
    return `--- ${place}\n${run(place, 'sh', '-c', `${show}; ${isNode ? ofNode : 'true'} || true`)}`;
  }).join('\n');

export const openEgressNetwork = async (): Promise<EgressNetwork> => {
  const ns = Object.fromEntries(PLACES.map((name) => [name, createNetns()])) as Record<Place, Netns>;
  const input: EgressNetwork['input'] = (place, argv, text) =>
    execFileSync('nsenter', [`--net=${ns[place].path}`, ...argv], { encoding: 'utf8', input: text });
  const run: EgressNetwork['run'] = (place, ...argv) => input(place, argv, '');
  applyNetworkLines(ns, LINES);
  for (const node of ['worker', 'gateway'] as const) {
    // Those of the tunnel as the agent sets them.
    const ofTunnel = ['rp_filter=2', 'src_valid_mark=1'].map((setting) => `net.ipv4.conf.default.${setting}`);
    run(node, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1', ...ofTunnel);
    input(node, ['nft', '-f', '-'], WATCH);
    // Its neighbors are known before anything is sent: no test waits for one.
    const beside =
      node === 'worker' ? (['gatewayOverlay', 'pod', 'other'] as const) : (['workerOverlay', 'gatewayPod'] as const);
    const neighbors = [...ADDRESSES.partner, ...beside.flatMap((host) => ADDRESSES[host])];
    learnNeighbors(ns[node], neighbors);
  }
  const clients = new Map<Place, PerlServer>();
  const clientAt = (place: Place): PerlServer => {
    const client = clients.get(place) ?? startPerl(['nsenter', `--net=${ns[place].path}`], CLIENT);
    clients.set(place, client);
    return client;
  };
  const nodes = { worker: await openNode(ns.worker, 'worker'), gateway: await openNode(ns.gateway, 'gateway') };
  await Promise.all((['partner', 'worker', 'gateway'] as const).map((place) => clientAt(place).ask('settle')));
  return {
    ns,
    nodes,
    run,
    output: (place, ...argv) => {
      const { stdout, stderr } = spawnSync('nsenter', [`--net=${ns[place].path}`, ...argv], { encoding: 'utf8' });
      return stdout + stderr;
    },
    input,
    async ask(from, to, timeoutSeconds, port = PORT) {
      const seen = await clientAt(from).ask('ask', to, port, timeoutSeconds ?? 2);
      if (seen === 'none' && timeoutSeconds === undefined)
        throw new Error(`${from} has no answer of ${to} port ${port}\n${stateOf(run)}`);
      return seen;
    },
    async send(from, to, sourcePort) {
      await clientAt(from).ask('send', to, PORT, sourcePort);
    },
    sources(node) {
      const { nftables } = JSON.parse(run(node, 'nft', '-j', 'list', 'table', 'netdev', 'watch')) as {
        nftables: { set?: { elem?: string[] } }[];
      };
      const seen = nftables.flatMap(({ set }) => set?.elem ?? []);
      run(node, 'nft', 'flush set netdev watch sources; flush set netdev watch sources6');
      return seen.filter((address) => !address.startsWith('fe80:')).sort();
    },
    marked: (node) =>
      Number(/packets (\d+)/.exec(run(node, 'nft', 'list', 'counter', 'netdev', 'watch', 'marked'))![1]),
    async close() {
      for (const client of clients.values()) client.end();
      for (const { net, nft } of Object.values(nodes)) {
        net.close();
        nft.close();
      }
      for (const one of Object.values(ns)) one.close();
    },
  };
};
