import { execFileSync } from 'node:child_process';
import { CONNECTIVITY } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import { type PerlServer, startPerl } from '@unbounded/testing/perl-server';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { watchDrops } from '../../kernel/dropped-packets.testdata.ts';
import { applyNetworkLines, learnNeighbors, type NetworkLine } from '../../kernel/network-lines.testdata.ts';
import { tableSpec } from '../../kernel/section-table.ts';
import { planOf } from './boundary-lab.testdata.ts';
import type { Family } from './boundary-network.testdata.ts';
import { findNetwork } from './own-network.ts';
import { COUNTERS } from './firewall-parts.ts';
import { planFirewall, type Surroundings } from './firewall.plan.ts';

/**
 * The gateway g1 with our table and no more. What passes our table is counted where a tunnel device or a listener would take it. On its
 * LAN it has `eth0`, `eth1` and, in the subnet of the first, `eth3`; on the WAN, to which the default route leads, `eth2`.
 */

/** Of both families. */
export const ADDRESSES = {
  /** By `eth0` alone. */
  nearNode: ['10.1.0.31', 'fd00:1::31'],
  /** By both interfaces of the LAN. */
  twiceNear: ['10.1.0.32', 'fd00:1::32'],
  /** A node of the other site, which is reached through the overlay. */
  farNode: ['10.2.0.31', 'fd00:2::31'],
  externalPeer: ['203.0.113.2', '2001:db8:113::2'],
  internet: ['198.51.100.9', '2001:db8:51::9'],
  /** Of the node: its InternalIP, another on `eth0`, and one on `eth2`. */
  internal: ['10.1.0.20', 'fd00:1::20'],
  another: ['10.1.0.253', 'fd00:1::253'],
  external: ['192.0.2.20', '2001:db8:2::20'],
  ownPod: ['100.65.20.9', 'fd64:65:20::9'],
  farPod: ['100.66.20.9', 'fd64:66:20::9'],
  /** Of the node, on loopback. */
  loopback: ['192.0.2.129', '2001:db8:3::1'],
} as const;
type Address = keyof typeof ADDRESSES;
const addressOf = (name: Address, family: Family): string => ADDRESSES[name][family === 4 ? 0 : 1];
/** `vxlan0` is a veth in the place of a tunnel, `cni0` one in that of a bridge of another CNI plugin. */
type Device = 'eth0' | 'eth1' | 'eth2' | 'eth3' | 'vxlan0' | 'cni0';
/** Of the node, and of who is beside it. */
const ENDS: Readonly<Record<Device, readonly [own: readonly string[], router: readonly string[]]>> = {
  eth0: [ADDRESSES.another, ['10.1.0.254', 'fd00:1::254']],
  eth1: [
    ['10.1.1.253', 'fd00:1:1::253'],
    ['10.1.1.254', 'fd00:1:1::254'],
  ],
  eth2: [ADDRESSES.external, ['192.0.2.1', '2001:db8:2::1']],
  eth3: [
    ['10.1.0.252', 'fd00:1::252'],
    ['10.1.0.251', 'fd00:1::251'],
  ],
  vxlan0: [
    ['100.66.255.1', 'fd64:66:ff::1'],
    ['100.66.255.2', 'fd64:66:ff::2'],
  ],
  cni0: [
    ['100.65.20.1', 'fd64:65:20::1'],
    ['100.65.20.254', 'fd64:65:20::254'],
  ],
};
const DEVICES = Object.keys(ENDS) as Device[];
const FAMILIES = [4, 6] as const;

/** A TCP segment that opens a connection; or a packet of UDP or IP protocol 4, with a header of GENEVE that has our VNI. */
const SEND = `use Socket qw(:all); use Fcntl;
sub answer {
  my ($device, $type, $to, $port, $from, $bytes) = @_;
  my @of = @{{ tcp => [SOCK_STREAM, 6], udp => [SOCK_DGRAM, 17], ipip => [SOCK_RAW, 4] }->{$type}};
  my $hints = { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM };
  my ($x, $at) = getaddrinfo($to, $type eq "ipip" ? 0 : $port, $hints); my ($y, $own) = getaddrinfo($from, 0, $hints);
  socket(my $s, $at->{family}, $of[0], $of[1]) or die $!;
  my @any = $at->{family} == AF_INET ? (0, 19) : (41, 75);
  setsockopt($s, $any[0], $any[1], 1) or die $!; # IP_TRANSPARENT, IPV6_TRANSPARENT
  $device eq "lo" or setsockopt($s, SOL_SOCKET, 25, pack("Z*", $device)) or die "$device: $!"; # SO_BINDTODEVICE
  bind($s, $own->{addr}) or die "$from: $!";
  if ($type eq "tcp") { fcntl($s, F_SETFL, O_NONBLOCK); connect($s, $at->{addr}); return; }
  send($s, pack("H*", "0000655800000100") . "x" x $bytes, 0, $at->{addr}) or die $!;
  return;
}`;

const WATCH = `table inet watch {
  counter passed { }
  chain c {
    type filter hook input priority 0;
    udp dport { 4789, 6081 } counter name passed
    meta l4proto 4 counter name passed
    tcp flags & (syn | ack) == syn counter name passed
  }
}`;

export interface Shot {
  /** lo: from the node itself. */
  readonly by: Device | 'lo';
  readonly source: Address;
  readonly to: Address;
  readonly type?: 'tcp' | 'udp' | 'ipip';
  readonly port?: number;
  readonly bytes?: number;
}

export interface MultihomedLab {
  readonly plan: KernelPlan;
  apply(plan: KernelPlan, surroundings?: Surroundings): Promise<void>;
  /** One packet; whether it passed, or was counted as a stray. */
  shoot(shot: Shot, family: Family): Promise<'passed' | 'dropped' | 'neither'>;
  close(): void;
}

const STRAYS = [COUNTERS.strayTunnelPacket, COUNTERS.strayScrape] as const;

type Line = NetworkLine<'node' | 'outside'>;

const has = (
  at: Line[0],
  device: string,
  addresses: readonly string[],
  lengths: readonly number[] = [24, 64],
): Line[] =>
  addresses.map((address, index) => [
    at,
    `addr add ${address}/${lengths[index]} dev ${device}${index === 1 ? ' nodad' : ''}`,
  ]);

const routesOf = (index: number): Line[] => {
  const way = (device: Device): string => `via ${ENDS[device][1][index]} dev ${device}`;
  const beside = DEVICES.flatMap((device, metric): Line[] => {
    const [own, router] = ENDS[device].map((addresses) => addresses[index]!);
    return [
      ['node', `route add ${router} dev ${device}`],
      ['outside', `route add ${own} dev ${device}`],
      ['outside', `route add default via ${own} dev ${device} metric ${100 + metric}`],
    ];
  });
  return [
    ...beside,
    ['node', `route add default ${way('eth2')}`],
    ['node', `route add ${ADDRESSES.nearNode[index]} ${way('eth0')}`],
    ['node', `route add ${ADDRESSES.twiceNear[index]} nexthop ${way('eth0')} nexthop ${way('eth1')}`],
    ['node', `route add ${ADDRESSES.farPod[index]} ${way('vxlan0')}`],
  ];
};

const linesOf = (place: 'eth0' | 'lo'): Line[] => [
  ['node', 'link set lo up'],
  ['outside', 'link set lo up'],
  ...DEVICES.flatMap((device): Line[] => {
    const [own, router] = ENDS[device];
    return [
      ['node', `link add ${device} type veth peer name ${device} netns outside`],
      ['node', `link set ${device} up`],
      ['outside', `link set ${device} up`],
      ...has('node', device, own),
      ...has('outside', device, router, [32, 128]),
    ];
  }),
  ...has('node', place, ADDRESSES.internal, place === 'lo' ? [32, 128] : [24, 64]),
  ...has('node', 'lo', ADDRESSES.loopback, [32, 128]),
  ...FAMILIES.flatMap((_, index) => routesOf(index)),
];

/** @param place where the InternalIP is: on its interface or, with BGP to the host, on loopback */
export const openMultihomedLab = async (
  place: 'eth0' | 'lo',
  plan = planOf({ role: 'gateway', protocol: 'VXLAN', dataplane: 'ebpf' }),
): Promise<MultihomedLab> => {
  const [node, outside]: [Netns, Netns] = [createNetns(), createNetns()];
  const within = (ns: Netns, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
  for (const ns of [node, outside])
    within(ns, 'sysctl', '-qw', ...['all', 'default'].map((key) => `net.ipv4.conf.${key}.rp_filter=0`));
  applyNetworkLines({ node, outside }, linesOf(place));
  learnNeighbors(
    outside,
    DEVICES.flatMap((device) => ENDS[device][0]),
  );
  execFileSync('nsenter', [`--net=${node.path}`, 'nft', '-f', '-'], { input: WATCH });
  const nft = createNftables({ netnsFd: node.fd });
  const net = createRouteSocket({ netnsFd: node.fd });
  const network = await findNetwork(net, await net.addresses.list(), plan);
  net.close();
  const passed = async (): Promise<number> =>
    (await nft.readCounters('inet', 'watch')).find(({ name }) => name === 'passed')!.packets;
  const [onNode, beside] = [node, outside].map((ns) => startPerl(['nsenter', `--net=${ns.path}`], SEND)) as [
    PerlServer,
    PerlServer,
  ];
  const strays = watchDrops(nft, { drops: STRAYS });
  const counts = (): Promise<number[]> => Promise.all([passed(), ...STRAYS.map((reason) => strays.of(reason))]);
  const apply: MultihomedLab['apply'] = (wanted, surroundings) =>
    nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(wanted, { network, ...surroundings })));
  await apply(plan);
  return {
    plan,
    apply,
    async shoot({ by, source, to, type = 'udp', port = 4789, bytes = 100 }, family) {
      const [passed, ...dropped] = await counts();
      const words = [by, type, addressOf(to, family), port, addressOf(source, family), bytes];
      await (by === 'lo' ? onNode : beside).ask(...words);
      const [passedNow, ...droppedNow] = await counts();
      if (passedNow! > passed!) return 'passed';
      return droppedNow.some((count, index) => count > dropped[index]!) ? 'dropped' : 'neither';
    },
    close() {
      onNode.end();
      beside.end();
      nft.close();
      node.close();
      outside.close();
    },
  };
};
