import { CONNECTIVITY } from '@unbounded/config/ownership';
import type { Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { startPerl } from '@unbounded/testing/perl-server';
import { serveTcp } from '@unbounded/testing/tcp-flows';
import { findMember, parseWorld, planNode, type TopologyObjects } from '@unbounded/topology';
import { DEVICES } from '../../data-path/devices.ts';
import type { DataPathKind, KernelPlan } from '../../data-path/kernel-plan.ts';
import { renderPlan } from '../../data-path/render.ts';
import type { BoundaryAdditions } from '../../kernel/boundary-additions.ts';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { tableSpec } from '../../kernel/section-table.ts';
import { objectsFor } from '../../testdata.ts';
import {
  devicesOf,
  makeBoundaryNetwork,
  NAMESPACES,
  type Namespace,
  type OwnAddresses,
  ownAddresses,
  type Place,
  PLACES,
  PORT,
} from './boundary-network.testdata.ts';
import { COUNTERS } from './firewall-parts.ts';
import { planFirewall } from './firewall.plan.ts';
import { NO_NETWORK, type OwnNetwork } from './own-network.ts';

/** A worker or a gateway of site 1 with our table, and shots at it from everywhere. */

type Protocol = Parameters<typeof objectsFor>[0];

const ROLES = { worker: { name: 'w1', host: 30 }, gateway: { name: 'g1', host: 20 } } as const;
type Role = keyof typeof ROLES;

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

/**
 * `send` PROTOCOL TO PORT FROM BYTES, from any address; or `ask` TO PORT FROM, which returns the address from which the server sees it come.
 */
const SHOTS = `use Socket qw(:all); use Fcntl; use IO::Socket::IP;
sub answer { my $what = shift; $what eq "ask" ? question(@_) : shot(@_) }
sub question {
  my ($to, $port, $from) = @_;
  my $s = IO::Socket::IP->new(PeerHost => $to, PeerPort => $port, LocalHost => $from, Timeout => 5) or die "no answer: $@ $!";
  my $seen = <$s>; chomp $seen; return $seen;
}
sub shot {
  my ($type, $to, $port, $from, $bytes) = @_;
  my @of = $type eq "tcp" ? (SOCK_STREAM, 6) : $type eq "udp" ? (SOCK_DGRAM, 17) : (SOCK_RAW, 6);
  my $hints = { flags => AI_NUMERICHOST, socktype => $type eq "tcp" ? SOCK_STREAM : SOCK_DGRAM };
  my ($x, $at) = getaddrinfo($to, $port, $hints); my ($y, $own) = getaddrinfo($from, 0, $hints);
  socket(my $s, $at->{family}, $of[0], $of[1]) or die $!;
  my @any = $at->{family} == AF_INET ? (0, 19) : (41, 75);
  setsockopt($s, $any[0], $any[1], 1) or die $!; # IP_TRANSPARENT, IPV6_TRANSPARENT
  bind($s, $own->{addr}) or die "$from: $!";
  if ($type eq "syn-ack") {
    my @ends = map { $at->{family} == AF_INET ? (unpack_sockaddr_in($_))[1] : (unpack_sockaddr_in6($_))[1] } $own->{addr}, $at->{addr};
    my $segment = pack("n2N2C2n3", 40000, $port, 1, 1, 0x50, 0x12, 1000, 0, 0);
    my $sum = 0; $sum += $_ for unpack("n*", join("", @ends) . pack("N2", length $segment, 6) . $segment);
    $sum = ($sum >> 16) + ($sum & 0xffff) while $sum > 0xffff;
    substr($segment, 16, 2) = pack("n", ~$sum & 0xffff);
    my $to = $at->{family} == AF_INET ? pack_sockaddr_in(0, $ends[1]) : pack_sockaddr_in6(0, $ends[1]);
    send($s, $segment, 0, $to) or $!{EPERM} or die $!; return;
  }
  if ($type eq "tcp") { fcntl($s, F_SETFL, O_NONBLOCK); connect($s, $at->{addr}); return; }
  send($s, "x" x $bytes, 0, $at->{addr}) or $!{EPERM} or die $!;
  return;
}`;

export interface Shot {
  readonly from: Place;
  readonly source: string;
  readonly to: string;
  readonly port?: number;
  /** Of a connection of TCP its first segment, or an answer to one that nobody saw. */
  readonly type?: 'udp' | 'tcp' | 'syn-ack';
  readonly bytes?: number;
}

export interface BoundaryLab {
  readonly plan: KernelPlan;
  readonly ns: Readonly<Record<Namespace, Netns>>;
  /** The node's own addresses, of its pod and, for those who are beside it, at its interfaces. */
  readonly own: OwnAddresses;
  apply(plan: KernelPlan, additions?: readonly BoundaryAdditions[], network?: OwnNetwork): Promise<void>;
  /** One packet; where it arrived, if it did. */
  shoot(shot: Shot): Promise<Namespace[]>;
  /** Over TCP: whom the server sees. @throws Error without an answer */
  ask(shot: Pick<Shot, 'from' | 'source' | 'to' | 'port'>): Promise<string>;
  /** ICMP errors that arrived there. */
  errors(place: Place): Promise<number>;
  /** As the agent's metric has it. */
  dropped(reason: string): Promise<number>;
  /** Packets that left the node with a mark of ours. */
  marked(): Promise<number>;
  close(): void;
}

export const openBoundaryLab = async (options: LabOptions): Promise<BoundaryLab> => {
  const plan = planOf(options);
  const devices = devicesOf(plan);
  const own = ownAddresses(ROLES[options.role].host);
  const network = makeBoundaryNetwork(plan, devices, own);
  const { ns } = network;
  const servers = await Promise.all(PLACES.map((place) => serveTcp(['nsenter', `--net=${ns[place].path}`], PORT)));
  const senders = new Map(PLACES.map((place) => [place, startPerl(['nsenter', `--net=${ns[place].path}`], SHOTS)]));
  const nfts = new Map(NAMESPACES.map((place) => [place, createNftables({ netnsFd: ns[place].fd })]));
  const nft = nfts.get('node')!;
  const present = [...Object.values(devices), DEVICES.echo];
  const apply: BoundaryLab['apply'] = (wanted, additions = [], ownNetwork = NO_NETWORK) =>
    nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(wanted, { additions, present, network: ownNetwork })));
  await apply(plan);
  const counted = async (place: Namespace, counter: 'arrived' | 'errors' | 'marked'): Promise<number> =>
    (await nfts.get(place)!.readCounters('inet', 'watch')).find(({ name }) => name === counter)!.packets;
  const drops = watchDrops(nft, { drops: Object.values(COUNTERS) });
  const arrivals = (): Promise<number[]> => Promise.all(NAMESPACES.map((place) => counted(place, 'arrived')));
  return {
    plan,
    ns,
    own,
    apply,
    async shoot({ from, source, to, port = PORT, type = 'udp', bytes = 100 }) {
      const before = await arrivals();
      await senders.get(from)!.ask('send', type, to, port, source, bytes);
      const after = await arrivals();
      return NAMESPACES.filter((_, index) => after[index]! > before[index]!);
    },
    ask: ({ from, source, to, port = PORT }) => senders.get(from)!.ask('ask', to, port, source),
    marked: () => counted('node', 'marked'),
    errors: (place) => counted(place, 'errors'),
    dropped: (reason) => drops.of(reason),
    close() {
      for (const one of [...servers, ...senders.values()]) one.end();
      for (const one of nfts.values()) one.close();
      network.close();
    },
  };
};
