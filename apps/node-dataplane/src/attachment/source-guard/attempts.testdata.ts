import { formatAddress, linkLocalOf } from '@unbounded/ip';
import type { DropReason } from './guard-expressions.ts';
import {
  advertisement,
  arp,
  be16,
  ethernet,
  fragmentHeader,
  icmp6,
  ipv4,
  ipv6,
  join,
  macOption,
  NONCE,
  optionsHeader,
  redirect,
  type Route,
  routerAdvertisement,
  solicitation,
  tagged,
  TYPE,
  u8,
  udp,
} from './frames.testdata.ts';

/** What a pod sends: what it may, and everything that is not its own. */

export interface Host {
  readonly mac: string;
  readonly v4: string;
  readonly v6: string;
}
export const POD: Host = { mac: '02:00:00:00:00:0a', v4: '100.65.30.2', v6: 'fd64:65:30::2' };
export const NEIGHBOR: Host = { mac: '02:00:00:00:00:0b', v4: '100.65.30.3', v6: 'fd64:65:30::3' };
/** Attached before pods were guarded. */
export const EARLIER: Host = { mac: '02:00:00:00:00:0c', v4: '100.65.30.4', v6: 'fd64:65:30::4' };
export const GATEWAY: Host = { mac: '02:00:00:00:00:fe', v4: '100.65.30.1', v6: 'fd64:65:30::1' };
/** Beyond the node. */
export const REMOTE: Host = { mac: '02:00:00:00:00:ee', v4: '192.0.2.2', v6: '2001:db8::2' };

const BROADCAST = 'ff:ff:ff:ff:ff:ff';
const ALL_NODES = { mac: '33:33:00:00:00:01', v6: 'ff02::1' };
const STRANGER = { mac: '02:00:00:00:00:99', v4: '203.0.113.9', v6: '2001:db8:9::9' };
const [ICMPV6, UDP, HOP_BY_HOP, FRAGMENT, DESTINATION] = [58, 17, 0, 44, 60];
const [MORE, IGMP, QUERY] = [0x2000, 2, 0x11];
const local = ({ mac }: { readonly mac: string }): string => formatAddress(linkLocalOf(mac));
const ownLocal = local(POD);

type Bytes = Uint8Array<ArrayBuffer>;
/** Told by 8 bytes in its payload, or behind it. */
export type Make = (marker: Uint8Array) => Bytes;
export interface Attempt {
  readonly what: string;
  readonly make: Make;
  readonly reason: DropReason;
  /** Goes to the bridge itself, which shows it to no other port and learns from it. */
  readonly isLearned?: true;
}

const mark =
  (frame: Bytes): Make =>
  (marker) =>
    join(frame, marker);
const to = ({ mac }: { readonly mac: string }, from: string = POD.mac) => ({ to: mac, from });
const toAll = to({ mac: BROADCAST });
const toNodes = to(ALL_NODES);

const datagram4 =
  (from: string, target: Host, via: Host = target, mac: string = POD.mac): Make =>
  (marker) => {
    const route = { from, to: target.v4 };
    return ethernet(to(via, mac), TYPE.ipv4, ipv4(route, UDP, udp(route, marker)));
  };
const datagram6 =
  (from: string, target: Host, via: Host = target): Make =>
  (marker) => {
    const route = { from, to: target.v6 };
    return ethernet(to(via), TYPE.ipv6, ipv6(route, UDP, udp(route, marker)));
  };
const frame6 = (route: Route, next: number, payload: Uint8Array, macs = toNodes): Make =>
  mark(ethernet(macs, TYPE.ipv6, ipv6(route, next, payload)));
const nd = (route: Route, message: Uint8Array): Make => frame6(route, ICMPV6, message);
const arpFrame = (packet: Uint8Array, macs = toAll): Make => mark(ethernet(macs, TYPE.arp, packet));

const allNodes = (from: string): Route => ({ from, to: ALL_NODES.v6 });
const own = allNodes(POD.v6);
const stolen = advertisement(own, NEIGHBOR.v6, macOption(2, POD.mac));
const routers = routerAdvertisement(allNodes(ownLocal), POD.mac);
const own4 = ethernet(to(NEIGHBOR), TYPE.ipv4, ipv4({ from: POD.v4, to: NEIGHBOR.v4 }, UDP, new Uint8Array(16)));

const linkLayer: [string, Make][] = [
  ['own address with the MAC of a neighbor', datagram4(POD.v4, GATEWAY, GATEWAY, NEIGHBOR.mac)],
  ['own address with a MAC of nobody, as macvlan has it', datagram4(POD.v4, NEIGHBOR, NEIGHBOR, STRANGER.mac)],
  ['own address with the MAC of the gateway', datagram4(POD.v4, NEIGHBOR, NEIGHBOR, GATEWAY.mac)],
  [
    'ARP with another MAC outside',
    arpFrame(arp(1, [POD.mac, POD.v4], GATEWAY.v4), to({ mac: BROADCAST }, NEIGHBOR.mac)),
  ],
  [
    'IPv6 with the MAC of a neighbor',
    frame6({ from: POD.v6, to: GATEWAY.v6 }, UDP, new Uint8Array(16), to(GATEWAY, NEIGHBOR.mac)),
  ],
];

const fragment4 = (offset: number): Make =>
  mark(ethernet(to(GATEWAY), TYPE.ipv4, ipv4({ from: NEIGHBOR.v4, to: GATEWAY.v4 }, UDP, new Uint8Array(16), offset)));
const internet4: [string, Make][] = [
  ['address of a neighbor, to the node', datagram4(NEIGHBOR.v4, GATEWAY)],
  ['address of a neighbor, to beyond', datagram4(NEIGHBOR.v4, REMOTE, GATEWAY)],
  ['address of the gateway, to a neighbor', datagram4(GATEWAY.v4, NEIGHBOR)],
  ['address of nobody, to beyond', datagram4(STRANGER.v4, REMOTE, GATEWAY)],
  ['address of nobody, to a neighbor', datagram4(STRANGER.v4, NEIGHBOR)],
  ['address of a host beyond, to a neighbor', datagram4(REMOTE.v4, NEIGHBOR)],
  ['loopback, to the node', datagram4('127.0.0.1', GATEWAY)],
  ['no address, to a neighbor', datagram4('0.0.0.0', NEIGHBOR)],
  ['first fragment', fragment4(MORE)],
  ['later fragment', fragment4(2)],
  [
    'IGMP query with the address of the gateway',
    mark(
      ethernet(
        toAll,
        TYPE.ipv4,
        ipv4({ from: GATEWAY.v4, to: '224.0.0.1' }, IGMP, join(u8(QUERY, 100), be16(0xee9b), new Uint8Array(4))),
      ),
    ),
  ],
  [
    'IPv6 that says it is IPv4',
    mark(ethernet(to(NEIGHBOR), TYPE.ipv4, ipv6({ from: NEIGHBOR.v6, to: NEIGHBOR.v6 }, UDP, new Uint8Array(16)))),
  ],
];

const internet6: [string, Make][] = [
  ['address of a neighbor, to the node', datagram6(NEIGHBOR.v6, GATEWAY)],
  ['address of a neighbor, to beyond', datagram6(NEIGHBOR.v6, REMOTE, GATEWAY)],
  ['address of the gateway, to a neighbor', datagram6(GATEWAY.v6, NEIGHBOR)],
  ['address of nobody, to beyond', datagram6(STRANGER.v6, REMOTE, GATEWAY)],
  ['link-local address of a neighbor', datagram6(local(NEIGHBOR), GATEWAY)],
  ['link-local address of the gateway', datagram6(local(GATEWAY), NEIGHBOR)],
  ['no address, and no neighbor discovery', datagram6('::', NEIGHBOR)],
  [
    'later fragment with the address of a neighbor',
    frame6(
      { from: NEIGHBOR.v6, to: GATEWAY.v6 },
      FRAGMENT,
      join(fragmentHeader(UDP, 16, false), new Uint8Array(16)),
      to(GATEWAY),
    ),
  ],
  [
    'advertisement with the address of a neighbor',
    nd(allNodes(NEIGHBOR.v6), advertisement(allNodes(NEIGHBOR.v6), NEIGHBOR.v6, macOption(2, POD.mac))),
  ],
  [
    'solicitation with the address of a neighbor',
    nd(allNodes(NEIGHBOR.v6), solicitation(allNodes(NEIGHBOR.v6), GATEWAY.v6, macOption(1, POD.mac))),
  ],
  [
    'router advertisement of the gateway',
    nd(allNodes(local(GATEWAY)), routerAdvertisement(allNodes(local(GATEWAY)), POD.mac)),
  ],
  ['advertisement without an address', nd(allNodes('::'), advertisement(allNodes('::'), POD.v6))],
];

const resolution4: [string, Make][] = [
  ['gratuitous reply for the gateway', arpFrame(arp(2, [POD.mac, GATEWAY.v4], GATEWAY.v4))],
  ['gratuitous request for a neighbor', arpFrame(arp(1, [POD.mac, NEIGHBOR.v4], NEIGHBOR.v4))],
  ['reply to a neighbor for the gateway', arpFrame(arp(2, [POD.mac, GATEWAY.v4], NEIGHBOR.v4), to(NEIGHBOR))],
  ['reply to the node for a neighbor', arpFrame(arp(2, [POD.mac, NEIGHBOR.v4], GATEWAY.v4), to(GATEWAY))],
  ['request with the address of the gateway', arpFrame(arp(1, [POD.mac, GATEWAY.v4], NEIGHBOR.v4), to(NEIGHBOR))],
  ['own address with the MAC of a neighbor', arpFrame(arp(2, [NEIGHBOR.mac, POD.v4], GATEWAY.v4), to(GATEWAY))],
  ['address and MAC of a neighbor', arpFrame(arp(1, [NEIGHBOR.mac, NEIGHBOR.v4], GATEWAY.v4))],
  ['probe for the address of a neighbor', arpFrame(arp(1, [POD.mac, '0.0.0.0'], NEIGHBOR.v4))],
  ['reply without an address', arpFrame(arp(2, [POD.mac, '0.0.0.0'], POD.v4))],
  ['of another kind of hardware', arpFrame(join(be16(6), arp(2, [POD.mac, GATEWAY.v4], GATEWAY.v4).subarray(2)))],
  ['cut off', (marker) => ethernet(toAll, TYPE.arp, marker)],
];

const discovery: [string, Make][] = [
  [
    'first fragment without what it carries, which the next one would have',
    frame6(own, FRAGMENT, join(fragmentHeader(DESTINATION, 0, true), u8(ICMPV6, 1, 1, 4, 0, 0, 0, 0))),
  ],
  ['advertisement for a neighbor', nd(own, stolen)],
  ['advertisement for the gateway', nd(own, advertisement(own, GATEWAY.v6, macOption(2, POD.mac)))],
  [
    'advertisement for a link-local address of a neighbor',
    nd(own, advertisement(own, local(NEIGHBOR), macOption(2, POD.mac))),
  ],
  ['own address with the MAC of a neighbor', nd(own, advertisement(own, POD.v6, macOption(2, NEIGHBOR.mac)))],
  ['solicitation with the MAC of a neighbor', nd(own, solicitation(own, GATEWAY.v6, macOption(1, NEIGHBOR.mac)))],
  [
    'own MAC, then that of a neighbor',
    nd(own, advertisement(own, POD.v6, macOption(2, POD.mac), macOption(2, NEIGHBOR.mac))),
  ],
  ['duplicate detection for a neighbor', nd(allNodes('::'), solicitation(allNodes('::'), NEIGHBOR.v6, NONCE))],
  [
    'duplicate detection with a MAC',
    nd(allNodes('::'), solicitation(allNodes('::'), POD.v6, macOption(1, NEIGHBOR.mac))),
  ],
  ['advertisement behind hop-by-hop options', frame6(own, HOP_BY_HOP, join(optionsHeader(ICMPV6), stolen))],
  ['advertisement behind destination options', frame6(own, DESTINATION, join(optionsHeader(ICMPV6), stolen))],
  [
    'advertisement behind both',
    frame6(own, HOP_BY_HOP, join(optionsHeader(DESTINATION), optionsHeader(ICMPV6), stolen)),
  ],
  ['advertisement in a fragment of its own', frame6(own, FRAGMENT, join(fragmentHeader(ICMPV6, 0, false), stolen))],
  [
    'beginning of an advertisement in fragments',
    frame6(own, FRAGMENT, join(fragmentHeader(ICMPV6, 0, true), stolen.subarray(0, 16))),
  ],
];

const routing: [string, Make][] = [
  ['router advertisement', nd(allNodes(ownLocal), routers)],
  [
    'router advertisement behind hop-by-hop options',
    frame6(allNodes(ownLocal), HOP_BY_HOP, join(optionsHeader(ICMPV6), routers)),
  ],
  [
    'router advertisement in a fragment',
    frame6(allNodes(ownLocal), FRAGMENT, join(fragmentHeader(ICMPV6, 0, false), routers)),
  ],
  ['redirect', nd(allNodes(ownLocal), redirect(allNodes(ownLocal), ownLocal, REMOTE.v6))],
];

const tag = (type: number, ...vlans: number[]): Make =>
  mark(
    tagged(
      to(NEIGHBOR),
      vlans.map((vlan) => [type, vlan] as const),
      own4,
    ),
  );
const other = (type: number, payload: Uint8Array = new Uint8Array(50)): Make => mark(ethernet(toAll, type, payload));
const BPDU = join(u8(0x42, 0x42, 3), new Uint8Array(35));
const protocols: [string, Make][] = [
  ['VLAN tag', tag(TYPE.vlan, 1)],
  ['priority tag', tag(TYPE.vlan, 0)],
  ['two VLAN tags', tag(TYPE.vlan, 1, 2)],
  ['service tag', tag(TYPE.qinq, 1)],
  ['spanning tree', mark(ethernet(to({ mac: '01:80:c2:00:00:00' }), BPDU.length, BPDU))],
  ['LLC', mark(ethernet(toAll, BPDU.length, BPDU))],
  ['RARP', other(0x8035)],
  ['MPLS', other(0x8847)],
  ['PPPoE', other(0x8863)],
  ['EAPOL', other(0x888e)],
];

/** Of nobody who sends: what the bridge knows of it came with an attempt. */
export const SILENT_MAC = '02:00:00:00:00:55';

/** Groups that bridges take for themselves: they learn from such frames, and give them to the node's IP stack, which takes datagrams of them. */
const bridgeGroup = (last: string): Host => ({ mac: `01:80:c2:00:00:${last}`, v4: GATEWAY.v4, v6: GATEWAY.v6 });
const [LACP, EAPOL_GROUP, LLDP_GROUP] = ['02', '03', '0e'].map(bridgeGroup) as [Host, Host, Host];
const learned = (group: Host, type: number, payload: Uint8Array): Make =>
  mark(ethernet(to(group, SILENT_MAC), type, payload));
const bridgeItself: Attempt[] = [
  {
    what: 'LACP with another MAC',
    make: learned(LACP, 0x8809, new Uint8Array(50)),
    reason: 'protocol',
    isLearned: true,
  },
  {
    what: 'EAPOL with another MAC',
    make: learned(EAPOL_GROUP, 0x888e, new Uint8Array(50)),
    reason: 'mac',
    isLearned: true,
  },
  {
    what: 'LLDP with another MAC',
    make: learned(LLDP_GROUP, TYPE.lldp, new Uint8Array(50)),
    reason: 'mac',
    isLearned: true,
  },
  { what: 'IPv4 of nobody, by LACP’s group', make: datagram4(STRANGER.v4, GATEWAY, LACP), reason: 'protocol' },
  { what: 'IPv4 of nobody, by EAPOL’s group', make: datagram4(STRANGER.v4, GATEWAY, EAPOL_GROUP), reason: 'ipv4' },
  { what: 'IPv4 of nobody, by LLDP’s group', make: datagram4(STRANGER.v4, GATEWAY, LLDP_GROUP), reason: 'ipv4' },
  { what: 'IPv6 of nobody, by LACP’s group', make: datagram6(STRANGER.v6, GATEWAY, LACP), reason: 'protocol' },
  { what: 'IPv6 of nobody, by LLDP’s group', make: datagram6(STRANGER.v6, GATEWAY, LLDP_GROUP), reason: 'ipv6' },
];

const as = (reason: DropReason, group: string, list: readonly (readonly [string, Make])[]): Attempt[] =>
  list.map(([what, make]) => ({ what: `${group}: ${what}`, make, reason }));

export const HOSTILE: readonly Attempt[] = [
  ...as('mac', 'MAC', linkLayer),
  ...as('ipv4', 'IPv4', internet4),
  ...as('ipv6', 'IPv6', internet6),
  ...as('arp', 'ARP', resolution4),
  ...as('nd', 'NDP', discovery),
  ...as('router', 'routers', routing),
  ...as('protocol', 'protocol', protocols),
  ...bridgeItself.map((attempt) => ({ ...attempt, what: `to the bridge itself: ${attempt.what}` })),
];

const unspecified = allNodes('::');
const listener = (route: Route): Bytes =>
  join(u8(ICMPV6, 0, 5, 2, 0, 0, 1, 0), icmp6(route, 143, join(be16(0, 1), u8(4, 0), be16(0), new Uint8Array(16))));

export const HONEST: readonly (readonly [what: string, make: Make])[] = [
  ['IPv4 to a neighbor', datagram4(POD.v4, NEIGHBOR)],
  ['IPv4 to the node', datagram4(POD.v4, GATEWAY)],
  ['IPv4 to beyond', datagram4(POD.v4, REMOTE, GATEWAY)],
  [
    'IPv4 in a fragment',
    mark(ethernet(to(NEIGHBOR), TYPE.ipv4, ipv4({ from: POD.v4, to: NEIGHBOR.v4 }, UDP, new Uint8Array(16), 2))),
  ],
  [
    'IPv4 multicast',
    mark(
      ethernet(
        to({ mac: '01:00:5e:00:00:fb' }),
        TYPE.ipv4,
        ipv4({ from: POD.v4, to: '224.0.0.251' }, UDP, new Uint8Array(16)),
      ),
    ),
  ],
  [
    'IGMP report',
    mark(
      ethernet(
        to({ mac: '01:00:5e:00:00:16' }),
        TYPE.ipv4,
        ipv4({ from: POD.v4, to: '224.0.0.22' }, IGMP, new Uint8Array(8)),
      ),
    ),
  ],
  ['IPv6 to a neighbor', datagram6(POD.v6, NEIGHBOR)],
  ['IPv6 to the node', datagram6(POD.v6, GATEWAY)],
  ['IPv6 to beyond', datagram6(POD.v6, REMOTE, GATEWAY)],
  ['IPv6 by the link-local address', datagram6(ownLocal, NEIGHBOR)],
  ['IPv6 behind destination options', frame6(own, DESTINATION, join(optionsHeader(UDP), new Uint8Array(16)))],
  ['IPv6 in a first fragment', frame6(own, FRAGMENT, join(fragmentHeader(UDP, 0, true), new Uint8Array(16)))],
  ['IPv6 in a later fragment', frame6(own, FRAGMENT, join(fragmentHeader(ICMPV6, 16, false), new Uint8Array(16)))],
  ['echo request', frame6(own, ICMPV6, icmp6(own, 128, new Uint8Array(12)))],
  [
    'echo request in a first fragment',
    frame6(own, FRAGMENT, join(fragmentHeader(ICMPV6, 0, true), icmp6(own, 128, new Uint8Array(12)))),
  ],
  ['nothing behind the IPv6 header', frame6(own, 59, new Uint8Array(0))],
  ['ARP request', arpFrame(arp(1, [POD.mac, POD.v4], GATEWAY.v4))],
  ['ARP reply', arpFrame(arp(2, [POD.mac, POD.v4], NEIGHBOR.v4), to(NEIGHBOR))],
  ['gratuitous ARP', arpFrame(arp(1, [POD.mac, POD.v4], POD.v4))],
  ['ARP probe', arpFrame(arp(1, [POD.mac, '0.0.0.0'], POD.v4))],
  ['solicitation', nd(own, solicitation(own, GATEWAY.v6, macOption(1, POD.mac)))],
  ['solicitation without an option', nd(own, solicitation(own, GATEWAY.v6))],
  [
    'solicitation by the link-local address',
    nd(allNodes(ownLocal), solicitation(allNodes(ownLocal), GATEWAY.v6, macOption(1, POD.mac))),
  ],
  ['advertisement', nd(own, advertisement(own, POD.v6, macOption(2, POD.mac)))],
  ['advertisement without an option', nd(own, advertisement(own, POD.v6))],
  [
    'advertisement of the link-local address',
    nd(allNodes(ownLocal), advertisement(allNodes(ownLocal), ownLocal, macOption(2, POD.mac))),
  ],
  ['duplicate detection', nd(unspecified, solicitation(unspecified, POD.v6))],
  ['duplicate detection with a nonce', nd(unspecified, solicitation(unspecified, POD.v6, NONCE))],
  ['duplicate detection of the link-local address', nd(unspecified, solicitation(unspecified, ownLocal, NONCE))],
  ['report of a multicast listener', frame6(allNodes(ownLocal), HOP_BY_HOP, listener(allNodes(ownLocal)))],
  ['report of a listener without an address', frame6(unspecified, HOP_BY_HOP, listener(unspecified))],
];

/** To beyond, from a port that is in no bridge: addressed to the port's own MAC. */
export const UNBRIDGED = (portMac: string): readonly Make[] => [
  datagram4(STRANGER.v4, REMOTE, { ...REMOTE, mac: portMac }),
  datagram6(STRANGER.v6, REMOTE, { ...REMOTE, mac: portMac }),
];
