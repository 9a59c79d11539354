import { execFileSync } from 'node:child_process';
import { CONNECTIVITY } from '@unbounded/config/ownership';
import { createNetns, createRouteSocket, type Netns } from '@unbounded/netlink';
import { createNftables } from '@unbounded/nftables';
import type { KernelPlan } from '../../data-path/kernel-plan.ts';
import { tableSpec } from '../../kernel/section-table.ts';
import { type Family, planOf } from './boundary-lab.testdata.ts';
import { findNetwork } from './own-network.ts';
import { planFirewall, type Surroundings } from './firewall.plan.ts';

/**
 * The gateway g1 with our table and no more: two interfaces on its LAN (`eth0`, `eth1`), one on the WAN (`eth2`), to which the default
 * route leads. What passes our table is counted where a tunnel device would take it.
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
  /** Of the node, on loopback. */
  loopback: ['192.0.2.129', '2001:db8:3::1'],
} as const;
export type Address = keyof typeof ADDRESSES;
export const addressOf = (name: Address, family: Family): string => ADDRESSES[name][family === 4 ? 0 : 1];
export type Device = 'eth0' | 'eth1' | 'eth2';
const ROUTERS = {
  eth0: ['10.1.0.254', 'fd00:1::254'],
  eth1: ['10.1.1.254', 'fd00:1:1::254'],
  eth2: ['192.0.2.1', '2001:db8:2::1'],
} as const;
const FAMILIES = [4, 6] as const;

/** UDP to a port, or IP protocol 4; with a header of GENEVE that has our VNI. */
const SEND = `use Socket qw(:all);
my ($device, $to, $port, $from, $bytes) = @ARGV;
my @of = $port eq "ipip" ? (SOCK_RAW, 4) : (SOCK_DGRAM, 17);
my $hints = { flags => AI_NUMERICHOST, socktype => SOCK_DGRAM };
my ($x, $at) = getaddrinfo($to, $port eq "ipip" ? 0 : $port, $hints); my ($y, $own) = getaddrinfo($from, 0, $hints);
socket(my $s, $at->{family}, $of[0], $of[1]) or die $!;
my @any = $at->{family} == AF_INET ? (0, 19) : (41, 75);
setsockopt($s, $any[0], $any[1], 1) or die $!; # IP_TRANSPARENT, IPV6_TRANSPARENT
setsockopt($s, SOL_SOCKET, 25, pack("Z*", $device)) or die "$device: $!"; # SO_BINDTODEVICE
bind($s, $own->{addr}) or die "$from: $!";
send($s, pack("H*", "0000655800000100") . "x" x $bytes, 0, $at->{addr}) or die $!;`;

const WATCH = `table inet watch {
  counter passed { }
  chain c {
    type filter hook input priority 0;
    udp dport { 4789, 6081 } counter name passed
    meta l4proto 4 counter name passed
  }
}`;

export interface Shot {
  readonly by: Device;
  readonly source: Address;
  readonly to: Address;
  readonly port?: 4789 | 6081 | 'ipip';
  readonly bytes?: number;
}

export interface WaysLab {
  readonly plan: KernelPlan;
  apply(plan: KernelPlan, surroundings?: Surroundings): Promise<void>;
  /** One packet; whether it passed, and whether it was counted as a stray. */
  shoot(shot: Shot, family: Family): Promise<'passed' | 'dropped' | 'neither'>;
  close(): void;
}

const addressNode = (
  add: (device: string, name: Address, lengths?: readonly [number, number]) => void,
  place: string,
) => {
  add('eth0', 'another');
  add(place, 'internal', place === 'lo' ? [32, 128] : [24, 64]);
  add('eth2', 'external');
  add('lo', 'loopback', [32, 128]);
};

/** @param place where the InternalIP is: on its interface or, with BGP to the host, on loopback */
export const openWaysLab = async (
  place: 'eth0' | 'lo',
  plan = planOf({ role: 'gateway', protocol: 'VXLAN', dataplane: 'ebpf' }),
): Promise<WaysLab> => {
  const [node, outside]: [Netns, Netns] = [createNetns(), createNetns()];
  const within = (ns: Netns, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });
  const ip = (ns: Netns, line: string): void => void within(ns, 'ip', ...line.split(' '));
  const add = (ns: Netns, device: string, addresses: readonly string[], lengths: readonly number[] = [24, 64]): void =>
    addresses.forEach((address, index) =>
      ip(ns, `addr add ${address}/${lengths[index]} dev ${device}${index === 1 ? ' nodad' : ''}`),
    );
  for (const ns of [node, outside]) {
    ip(ns, 'link set lo up');
    for (const key of ['all', 'default']) within(ns, 'sysctl', '-qw', `net.ipv4.conf.${key}.rp_filter=0`);
  }
  for (const device of ['eth0', 'eth1', 'eth2'] as const) {
    ip(node, `link add ${device} type veth peer name ${device} netns ${outside.path}`);
    for (const ns of [node, outside]) ip(ns, `link set ${device} up`);
    add(outside, device, ROUTERS[device], [32, 128]);
  }
  add(node, 'eth1', ['10.1.1.253', 'fd00:1:1::253']);
  addressNode((device, name, lengths) => add(node, device, ADDRESSES[name], lengths), place);
  const beside = { eth0: ADDRESSES.another, eth1: ['10.1.1.253', 'fd00:1:1::253'], eth2: ADDRESSES.external } as const;
  FAMILIES.forEach((family, index) => {
    const way = (device: Device): string => `via ${ROUTERS[device][index]} dev ${device}`;
    ip(node, `-${family} route add default ${way('eth2')}`);
    ip(node, `-${family} route add ${ADDRESSES.nearNode[index]} ${way('eth0')}`);
    ip(node, `-${family} route add ${ADDRESSES.twiceNear[index]} nexthop ${way('eth0')} nexthop ${way('eth1')}`);
    for (const [metric, device] of (['eth0', 'eth1', 'eth2'] as const).entries()) {
      const router = beside[device][index]!;
      ip(outside, `-${family} route add ${router} dev ${device}`);
      ip(outside, `-${family} route add default via ${router} dev ${device} metric ${100 + metric}`);
      within(outside, 'ping', '-c', '1', '-w', '5', '-i', '0.05', router); // no packet waits for a neighbor
    }
  });
  execFileSync('nsenter', [`--net=${node.path}`, 'nft', '-f', '-'], { input: WATCH });
  const nft = createNftables({ netnsFd: node.fd });
  const net = createRouteSocket({ netnsFd: node.fd });
  const network = await findNetwork(net, await net.addresses.list(), plan.ownAddresses);
  net.close();
  const counted = async (table: string, counter: string): Promise<number> =>
    (await nft.readCounters('inet', table)).find(({ name }) => name === counter)!.packets;
  const counts = (): Promise<number[]> =>
    Promise.all([counted('watch', 'passed'), counted('unbounded', 'stray_tunnel_packet')]);
  const apply: WaysLab['apply'] = (wanted, surroundings) =>
    nft.replaceTable(tableSpec(CONNECTIVITY, planFirewall(wanted, { network, ...surroundings })));
  await apply(plan);
  return {
    plan,
    apply,
    async shoot({ by, source, to, port = 4789, bytes = 100 }, family) {
      const [passed, dropped] = await counts();
      within(
        outside,
        'perl',
        '-e',
        SEND,
        by,
        addressOf(to, family),
        String(port),
        addressOf(source, family),
        String(bytes),
      );
      const [passedNow, droppedNow] = await counts();
      if (passedNow! > passed!) return 'passed';
      return droppedNow! > dropped! ? 'dropped' : 'neither';
    },
    close() {
      nft.close();
      node.close();
      outside.close();
    },
  };
};
