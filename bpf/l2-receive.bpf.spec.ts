import type { L2Reason } from '@unbounded/bpf-maps/l2';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  advertisement,
  type Arp,
  arp,
  BROADCAST,
  ethernet,
  icmpv6,
  macOption,
  type Outer,
  packet,
  sid,
  solicitation,
  solicitedNode,
  TYPE,
} from './l2-frames.ts';
import {
  around,
  FAR,
  FAR_LOCATOR,
  type L2Switch,
  buildSwitch,
  LOCATOR,
  MTU,
  NEAR,
  NETWORK,
  OWN,
  populate,
  PORT,
  REDIRECT,
  runReceive,
  SEGMENT,
  SHOT,
} from './l2-switch.ts';
import type { Flow } from './packets.ts';

/** Frames from another node. */

let l2: L2Switch;

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => populate(l2));
afterAll(() => l2[Symbol.dispose]());

const macs = { from: FAR.mac, to: NEAR.mac };
const flow4: Flow = { source: FAR.ipv4, destination: NEAR.ipv4 };
const inner = packet(macs, flow4);
const DT2U = sid(LOCATOR, 1, NETWORK);
const DT2M = sid(LOCATOR, 2, NETWORK);
const outcome = (data: Uint8Array): [number, Partial<Record<L2Reason, number>>] => {
  const { returnValue } = runReceive(l2, data);
  return [returnValue, l2.counts()];
};

describe('End.DT2U', () => {
  const reply = { operation: 2, senderMac: FAR.mac, sender: FAR.ipv4, targetMac: NEAR.mac, target: NEAR.ipv4 };

  test.each<[string, Uint8Array]>([
    ['IPv4', inner],
    ['IPv6', packet(macs, { source: FAR.ipv6, destination: NEAR.ipv6 })],
    ['another protocol', ethernet(macs, 0x88b5, new Uint8Array(100).fill(7))],
    ['the length of the MTU', ethernet(macs, 0x88b5, new Uint8Array(MTU).fill(7))],
  ])('%s comes out as it went in', (_, frame) => {
    const result = runReceive(l2, around(frame));
    expect(result.returnValue).toBe(REDIRECT);
    expect(result.data).toEqual(frame);
    expect(l2.counts()).toEqual({ received: 1 });
  });

  test.each<[string, Uint8Array]>([
    ['ARP', arp(macs, reply)],
    ['a frame of no payload', ethernet(macs, 0x88b5, [])],
    ['a frame of one byte', ethernet(macs, 0x88b5, [0x60])],
  ])('%s comes out padded to the shortest frame of Ethernet', (_, frame) => {
    const result = runReceive(l2, around(frame));
    expect(result.returnValue).toBe(REDIRECT);
    expect(result.data).toEqual(Uint8Array.from([...frame, ...new Uint8Array(60 - frame.length)]));
  });

  test.each<[string, string, string]>([
    ['for an endpoint of another node', FAR.mac, '02:00:00:00:00:04'],
    ['for nobody', FAR.mac, '02:00:00:00:00:99'],
    ['for a group', FAR.mac, BROADCAST],
  ])('a frame %s goes nowhere', (_, from, to) => {
    l2.fdb.set(
      { network: NETWORK, mac: '02:00:00:00:00:04' },
      { locator: FAR_LOCATOR, segment: SEGMENT, sequence: 0n },
    );
    expect(outcome(around(packet({ from, to }, flow4)))).toEqual([SHOT, { drop_not_local: 1 }]);
  });

  test('a segment that may not reach the destination is held up here too', () => {
    l2.fdb.set({ network: NETWORK, mac: FAR.mac }, { locator: FAR_LOCATOR, segment: 8, sequence: 0n });
    expect(outcome(around(inner))).toEqual([SHOT, { drop_segment: 1 }]);
    l2.segments.set({ network: NETWORK, from: 8, to: SEGMENT }, true);
    expect(outcome(around(inner))).toEqual([REDIRECT, { drop_segment: 1, received: 1 }]);
  });
});

describe('End.DT2M', () => {
  test('hands a broadcast to the ports here', () => {
    l2.flood.set(NETWORK, { ports: [NEAR.ifindex], locators: [FAR_LOCATOR] });
    const broadcast = packet({ ...macs, to: BROADCAST }, { ...flow4, destination: '10.9.0.255' });
    expect(outcome(around(broadcast, { destination: DT2M }))).toEqual([SHOT, { received: 1 }]);
  });

  test('hands what has a port here to that port alone', () => {
    expect(outcome(around(inner, { destination: DT2M }))).toEqual([REDIRECT, { received: 1 }]);
  });

  test('never sends to a node again', () => {
    l2.fdb.set(
      { network: NETWORK, mac: '02:00:00:00:00:04' },
      { locator: 'fd00:cafe:0:3::', segment: SEGMENT, sequence: 0n },
    );
    const sent = packet({ ...macs, to: '02:00:00:00:00:04' }, flow4);
    expect(outcome(around(sent, { destination: DT2M }))).toEqual([SHOT, { drop_not_local: 1 }]);
  });
});

describe('what is no frame for this node', () => {
  test.each<[string, string]>([
    ['of another node', sid(FAR_LOCATOR, 1, NETWORK)],
    ['of another function', DT2U.replace(':1:102:', ':3:102:')],
    ['of a network that is not here', sid(LOCATOR, 1, NETWORK + 1)],
    ['with something behind it', DT2U.replace(/:0$/, ':1')],
    ['that is the locator alone', LOCATOR],
  ])('a SID %s is dropped', (_, destination) => {
    expect(outcome(around(inner, { destination }))).toEqual([SHOT, { drop_not_sid: 1 }]);
  });

  test('a network that has gone takes its SIDs along', () => {
    l2.networks.delete(NETWORK);
    expect(outcome(around(inner))).toEqual([SHOT, { drop_not_sid: 1 }]);
  });

  test('IPv4 is dropped', () => {
    expect(outcome(inner)).toEqual([SHOT, { drop_not_sid: 1 }]);
  });

  test.each<[string, Uint8Array]>([
    ['with another next header', around(inner, { nextHeader: 41 })],
    ['with a routing header', around(inner, { nextHeader: 43 })],
    ['longer than it is', around(inner, { length: inner.length + 1 })],
    ['shorter than it is', around(inner, { length: inner.length - 1 })],
    ['without an inner header', around(inner.slice(0, 13))],
  ])('a packet %s is dropped', (_, data) => {
    expect(outcome(data)).toEqual([SHOT, { drop_malformed: 1 }]);
  });

  test.each<[string, Uint8Array, L2Reason]>([
    ['with a tag', ethernet(macs, TYPE.vlan, new Uint8Array(50)), 'drop_tagged'],
    ['of a group', packet({ ...macs, from: '03:00:00:00:00:03' }, flow4), 'drop_forged_mac'],
    ['for bridges', ethernet({ ...macs, to: '01:80:c2:00:00:00' }, 0x88cc, new Uint8Array(46)), 'drop_bridge_protocol'],
    ['of LLC', ethernet(macs, 46, new Uint8Array(46)), 'drop_llc'],
  ])('an inner frame %s is dropped', (_, frame, reason) => {
    expect(outcome(around(frame))).toEqual([SHOT, { [reason]: 1 }]);
  });
});

describe('the sender', () => {
  test.each<[string, Partial<Outer>]>([
    ['another node', { source: 'fd00:cafe:0:3::' }],
    ['an address of the node that is not its locator', { source: 'fd00:cafe:0:2::1' }],
    ['this node itself', { source: LOCATOR }],
  ])('%s brings nothing in the name of an endpoint', (_, more) => {
    expect(outcome(around(inner, more))).toEqual([SHOT, { drop_forged_node: 1 }]);
  });

  test('nobody brings frames of an endpoint that is here', () => {
    expect(outcome(around(packet({ from: OWN.mac, to: NEAR.mac }, flow4)))).toEqual([SHOT, { drop_forged_node: 1 }]);
    expect(l2.ports.get(PORT)?.mac).toBe(OWN.mac);
  });

  test('nobody brings frames of an endpoint that is nowhere', () => {
    const strange = packet({ from: '02:00:00:00:00:99', to: NEAR.mac }, flow4);
    expect(outcome(around(strange))).toEqual([SHOT, { drop_unknown_source: 1 }]);
  });
});

/** A compromised node sends whatever it likes from its locator, with the MAC of an endpoint that it has. */
describe('an endpoint speaks for itself alone, whatever its node sends:', () => {
  const GROUP = { from: FAR.mac, to: '33:33:00:00:00:01' };
  const reply: Arp = { operation: 2, senderMac: FAR.mac, sender: FAR.ipv4, targetMac: NEAR.mac, target: NEAR.ipv4 };
  const flow6: Flow = { source: FAR.ipv6, destination: NEAR.ipv6 };
  const nd = (message: readonly number[], more: object = {}): Uint8Array =>
    icmpv6(macs, { source: FAR.ipv6, destination: NEAR.ipv6, message, ...more });
  const ROUTER_ADVERTISEMENT = nd([134, 0, 0, 0, ...new Uint8Array(36)]);
  const REDIRECT_MESSAGE = nd([137, 0, 0, 0, ...new Uint8Array(36)]);
  const offer4 = packet(macs, { ...flow4, ports: [67, 68] });
  const offer6 = packet(macs, { ...flow6, ports: [547, 546] });
  const allow = (more: { readonly trusted?: boolean; readonly forwards?: boolean }): void =>
    l2.fdb.set({ network: NETWORK, mac: FAR.mac }, { locator: FAR_LOCATOR, segment: SEGMENT, sequence: 0n, ...more });

  test.each<[string, Uint8Array, L2Reason]>([
    ['ARP for an address of this node', arp(macs, { ...reply, sender: OWN.ipv4 }), 'drop_forged_arp'],
    ['ARP for an address of nobody', arp(macs, { ...reply, sender: '10.9.0.99' }), 'drop_forged_arp'],
    ['ARP with the MAC of another', arp(macs, { ...reply, senderMac: OWN.mac }), 'drop_forged_arp'],
    [
      'gratuitous ARP of another’s address',
      arp(macs, { ...reply, sender: OWN.ipv4, target: OWN.ipv4 }),
      'drop_forged_arp',
    ],
    [
      'RARP for another',
      arp(
        macs,
        { operation: 3, senderMac: FAR.mac, sender: '0.0.0.0', targetMac: OWN.mac, target: '0.0.0.0' },
        TYPE.rarp,
      ),
      'drop_forged_arp',
    ],
    ['IPv4 from another', packet(macs, { ...flow4, source: OWN.ipv4 }), 'drop_forged_address'],
    ['IPv6 from another', packet(macs, { ...flow6, source: OWN.ipv6 }), 'drop_forged_address'],
    ['IPv4 from nobody', packet(macs, { ...flow4, source: '192.0.2.1' }), 'drop_forged_address'],
    ['IPv6 from a link-local address of nobody', packet(macs, { ...flow6, source: 'fe80::1' }), 'drop_forged_address'],
    ['an advertisement for another', nd(advertisement(OWN.ipv6, 0x60, macOption(2, FAR.mac))), 'drop_forged_nd'],
    ['an advertisement with another’s MAC', nd(advertisement(FAR.ipv6, 0x60, macOption(2, OWN.mac))), 'drop_forged_nd'],
    ['a solicitation with another’s MAC', nd(solicitation(NEAR.ipv6, macOption(1, OWN.mac))), 'drop_forged_nd'],
    ['a router advertisement', ROUTER_ADVERTISEMENT, 'drop_router'],
    ['a redirect', REDIRECT_MESSAGE, 'drop_router'],
    ['an answer of DHCP', offer4, 'drop_dhcp_reply'],
    ['an answer of DHCP by another port', packet(macs, { ...flow4, ports: [4000, 68] }), 'drop_dhcp_reply'],
    ['an answer of DHCPv6', offer6, 'drop_dhcp_reply'],
    ['an IPv6 header that is cut off', ethernet(macs, TYPE.ipv6, [0x60]), 'drop_malformed'],
  ])('%s is dropped, in unicast and in what is sent to all', (_, frame, reason) => {
    expect(outcome(around(frame))).toEqual([SHOT, { [reason]: 1 }]);
    l2.flood.set(NETWORK, { ports: [NEAR.ifindex], locators: [] });
    expect(outcome(around(frame, { destination: DT2M }))).toEqual([SHOT, { [reason]: 2 }]);
  });

  test('a Neighbor that another endpoint has is none of its own', () => {
    l2.neighbors.set({ network: NETWORK, address: FAR.ipv4 }, { mac: '02:00:00:00:00:05' });
    expect(outcome(around(inner))).toEqual([SHOT, { drop_forged_address: 1 }]);
    l2.neighbors.delete({ network: NETWORK, address: FAR.ipv4 });
    l2.neighbors.set({ network: NETWORK + 1, address: FAR.ipv4 }, { mac: FAR.mac });
    expect(outcome(around(inner))).toEqual([SHOT, { drop_forged_address: 2 }]);
  });

  test.each<[string, Uint8Array]>([
    ['a router advertisement', ROUTER_ADVERTISEMENT],
    ['a redirect', REDIRECT_MESSAGE],
    ['an answer of DHCP', offer4],
    ['an answer of DHCPv6', offer6],
  ])('%s of an endpoint that is trusted passes', (_, frame) => {
    allow({ trusted: true });
    expect(outcome(around(frame))).toEqual([REDIRECT, { received: 1 }]);
  });

  test('a router brings packets of others, whose ARP stays its own', () => {
    allow({ forwards: true });
    expect(outcome(around(packet(macs, { ...flow4, source: '192.0.2.1' })))).toEqual([REDIRECT, { received: 1 }]);
    expect(outcome(around(arp(macs, { ...reply, sender: OWN.ipv4 })))).toEqual([
      SHOT,
      { received: 1, drop_forged_arp: 1 },
    ]);
  });

  const probed = solicitedNode(FAR.ipv6);
  test.each<[string, Uint8Array]>([
    ['gratuitous ARP', arp({ ...macs, to: BROADCAST }, { ...reply, operation: 1, target: FAR.ipv4 })],
    ['a gratuitous answer', arp({ ...macs, to: BROADCAST }, { ...reply, target: FAR.ipv4 })],
    [
      'a probe for a duplicate (RFC 5227)',
      arp({ ...macs, to: BROADCAST }, { ...reply, operation: 1, sender: '0.0.0.0', target: FAR.ipv4 }),
    ],
    [
      'RARP',
      arp(
        { ...macs, to: BROADCAST },
        { operation: 3, senderMac: FAR.mac, sender: '0.0.0.0', targetMac: FAR.mac, target: '0.0.0.0' },
        TYPE.rarp,
      ),
    ],
    [
      'an unsolicited advertisement',
      icmpv6(GROUP, {
        source: FAR.ipv6,
        destination: 'ff02::1',
        message: advertisement(FAR.ipv6, 0x20, macOption(2, FAR.mac)),
      }),
    ],
    [
      'a probe for a duplicate (RFC 4862)',
      icmpv6(
        { ...GROUP, to: probed.mac },
        { source: '::', destination: probed.address, message: solicitation(FAR.ipv6) },
      ),
    ],
    [
      'a listener’s report from ::',
      icmpv6(
        { ...GROUP, to: '33:33:00:00:00:16' },
        { source: '::', destination: 'ff02::16', message: [143, 0, 0, 0, 0, 0, 0, 0] },
      ),
    ],
    [
      'a client’s request for DHCP',
      packet({ ...macs, to: BROADCAST }, { source: '0.0.0.0', destination: '255.255.255.255', ports: [68, 67] }),
    ],
  ])('%s of its own comes to all', (_, frame) => {
    l2.flood.set(NETWORK, { ports: [NEAR.ifindex], locators: [] });
    expect(outcome(around(frame, { destination: DT2M }))).toEqual([SHOT, { received: 1 }]);
  });

  test('a link-local address that the Neighbor map has at its MAC is its own', () => {
    l2.neighbors.set({ network: NETWORK, address: 'fe80::ff:fe00:3' }, { mac: FAR.mac });
    expect(outcome(around(packet(macs, { ...flow6, source: 'fe80::ff:fe00:3' })))).toEqual([REDIRECT, { received: 1 }]);
  });
});

test('a node without a configuration takes nothing', () => {
  l2.unconfigure();
  expect(outcome(around(inner))).toEqual([SHOT, { drop_no_network: 1 }]);
});
