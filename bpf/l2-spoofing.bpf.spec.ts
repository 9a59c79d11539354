import { macBytes } from '@unbounded/ip';
import type { L2Reason } from '@unbounded/bpf-maps/l2';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  advertisement,
  type Arp,
  arp,
  arpBytes,
  BROADCAST,
  bytesOf,
  ethernet,
  icmpv6,
  macOption,
  packet,
  solicitation,
  TYPE,
} from './l2-frames.ts';
import {
  FAR,
  type L2Switch,
  buildSwitch,
  NEAR,
  NETWORK,
  outcomeAtPort,
  OWN,
  populate,
  PORT,
  REDIRECT,
  runPort,
  SEGMENT,
  segmented,
  SHOT,
} from './l2-switch.ts';
import type { Flow } from './packets.ts';

/** What a port may send: it speaks for itself alone, and is neither a server nor a router unless it is said to be one. */

let l2: L2Switch;

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => populate(l2));
afterAll(() => l2[Symbol.dispose]());

const STRANGER = '02:00:00:00:00:99';
const unicast = { from: OWN.mac, to: NEAR.mac };
const flow4: Flow = { source: OWN.ipv4, destination: NEAR.ipv4 };
const flow6: Flow = { source: OWN.ipv6, destination: NEAR.ipv6 };

const outcome = (data: Uint8Array, context?: Uint8Array) => outcomeAtPort(l2, data, context);
const FORWARDED = [REDIRECT, { forwarded: 1 }];
const dropped = (reason: L2Reason): unknown => [SHOT, { [reason]: 1 }];
const allow = (more: { readonly trusted?: boolean; readonly forwards?: boolean }): void =>
  l2.ports.set(PORT, { network: NETWORK, segment: SEGMENT, rate: 1000, burst: 100, mac: OWN.mac, ...more });
const changed = (data: Uint8Array, at: number, ...bytes: readonly number[]): Uint8Array => {
  const copy = Uint8Array.from(data);
  copy.set(bytes, at);
  return copy;
};

describe('frames', () => {
  test.each<[string, Uint8Array, L2Reason]>([
    ['of another MAC', packet({ ...unicast, from: STRANGER }, flow4), 'drop_forged_mac'],
    ['of a group', packet({ ...unicast, from: '03:00:00:00:00:01' }, flow4), 'drop_forged_mac'],
    ['with an 802.1Q tag', ethernet(unicast, TYPE.vlan, new Uint8Array(50)), 'drop_tagged'],
    ['with an 802.1ad tag', ethernet(unicast, TYPE.provider, new Uint8Array(50)), 'drop_tagged'],
    [
      'of the spanning tree',
      ethernet({ ...unicast, to: '01:80:c2:00:00:00' }, 38, new Uint8Array(46)),
      'drop_bridge_protocol',
    ],
    ['of LLDP', ethernet({ ...unicast, to: '01:80:c2:00:00:0e' }, 0x88cc, new Uint8Array(46)), 'drop_bridge_protocol'],
    ['of LLC', ethernet(unicast, 46, new Uint8Array(46)), 'drop_llc'],
    ['longer than the MTU that are no IP', ethernet(unicast, 0x88b5, new Uint8Array(1400)), 'drop_too_big'],
  ])('%s are dropped', (_, data, reason) => expect(outcome(data)).toEqual(dropped(reason)));

  test('to the first group behind the reserved ones are not bridge protocols', () => {
    expect(outcome(ethernet({ ...unicast, to: '01:80:c2:00:00:10' }, 0x88b5, new Uint8Array(46)))).toEqual(
      dropped('drop_multicast'),
    );
  });

  test('of TCP, which say that they are one segment, are none', () => {
    expect(outcome(packet(unicast, { ...flow4, protocol: 6 }), segmented('segs', 1))).toEqual(FORWARDED);
  });

  test.each(['segs', 'size'] as const)('that are superpackets (gso_%s) are dropped', (field) => {
    expect(outcome(packet(unicast, flow4), segmented(field, 2))).toEqual(dropped('drop_superpacket'));
  });
});

describe('IP', () => {
  test('from an own address passes', () => {
    expect(outcome(packet(unicast, flow4))).toEqual(FORWARDED);
  });

  test('of IPv6 from an own address passes', () => {
    expect(outcome(packet(unicast, flow6))).toEqual(FORWARDED);
  });

  test.each<[string, Uint8Array, L2Reason]>([
    ['from another IPv4 address', packet(unicast, { ...flow4, source: NEAR.ipv4 }), 'drop_forged_address'],
    ['from 0.0.0.0', packet(unicast, { ...flow4, source: '0.0.0.0' }), 'drop_forged_address'],
    ['from another IPv6 address', packet(unicast, { ...flow6, source: NEAR.ipv6 }), 'drop_forged_address'],
    [
      'from a link-local address that is not given',
      packet(unicast, { ...flow6, source: 'fe80::1' }),
      'drop_forged_address',
    ],
    ['from ::', packet(unicast, { ...flow6, source: '::' }), 'drop_forged_address'],
    ['with an IPv4 header of 16 bytes', changed(packet(unicast, flow4), 14, 0x44), 'drop_malformed'],
    ['of version 5', changed(packet(unicast, flow4), 14, 0x55), 'drop_malformed'],
    ['longer than the frame', changed(packet(unicast, flow4), 16, 4, 0), 'drop_malformed'],
    ['of IPv6 longer than the frame', changed(packet(unicast, flow6), 18, 4, 0), 'drop_malformed'],
  ])('%s is dropped', (_, data, reason) => expect(outcome(data)).toEqual(dropped(reason)));

  test('from a link-local address that is given passes', () => {
    l2.addresses.set({ ifindex: PORT, address: 'fe80::1' }, true);
    expect(outcome(packet(unicast, { ...flow6, source: 'fe80::1' }))).toEqual(FORWARDED);
  });

  test('of others passes at a port that forwards, under its own MAC', () => {
    allow({ forwards: true });
    expect(outcome(packet(unicast, { ...flow4, source: '192.0.2.1' }))).toEqual(FORWARDED);
    runPort(l2, packet({ ...unicast, from: STRANGER }, { ...flow4, source: '192.0.2.1' }));
    expect(l2.counts()).toEqual({ forwarded: 1, drop_forged_mac: 1 });
  });
});

describe('DHCP', () => {
  const answer4: Flow = { ...flow4, ports: [67, 68] };
  const answer6: Flow = { ...flow6, ports: [547, 546] };
  const HIDDEN: readonly (readonly [number, Uint8Array])[] = [[60, new Uint8Array(8)]];

  test.each<[string, Flow]>([
    ['of DHCP', answer4],
    ['of DHCP behind IPv4 options', { ...answer4, options: 8 }],
    ['of DHCP in a first fragment', { ...answer4, fragment: 0x2000 }],
    ['of DHCP to a client, from any port', { ...flow4, ports: [4000, 68] }],
    ['of DHCP from a server, to any port', { ...flow4, ports: [67, 4000] }],
    ['of DHCPv6', answer6],
    ['of DHCPv6 to a client, from any port', { ...flow6, ports: [4000, 546] }],
    ['of DHCPv6 from a server, to any port', { ...flow6, ports: [547, 4000] }],
    ['of DHCPv6 behind an extension header', { ...answer6, extensions: HIDDEN }],
  ])('replies %s come from trusted ports alone', (_, flow) => {
    expect(outcome(packet(unicast, flow))).toEqual(dropped('drop_dhcp_reply'));
    allow({ trusted: true });
    expect(runPort(l2, packet(unicast, flow)).returnValue).toBe(REDIRECT);
  });

  test.each<[string, Flow, number]>([
    ['IPv4', flow4, 2],
    ['IPv6', flow6, 4],
  ])('ports of UDP behind the end of a packet of %s are none', (_, flow, lengthAt) => {
    const whole = packet(unicast, flow);
    const length = flow === flow4 ? 20 + 7 : 7;
    expect(outcome(changed(whole, 14 + lengthAt, 0, length))).toEqual(dropped('drop_malformed'));
    expect(runPort(l2, changed(whole, 14 + lengthAt, 0, length + 1)).returnValue).toBe(REDIRECT);
  });

  test('a client without an address asks by broadcast', () => {
    const asked: Flow = { source: '0.0.0.0', destination: '255.255.255.255', ports: [68, 67] };
    expect(outcome(packet({ from: OWN.mac, to: BROADCAST }, asked))).toEqual(dropped('drop_broadcast')); // by the network's policy
    expect(runPort(l2, packet({ from: OWN.mac, to: BROADCAST }, { ...asked, ports: [69, 67] })).returnValue).toBe(SHOT);
    expect(l2.counts()).toEqual({ drop_broadcast: 1, drop_forged_address: 1 });
  });

  test('extension headers behind the end of a packet are none', () => {
    const [NEXT_OF_THE_SECOND, NO_NEXT_HEADER] = [14 + 40 + 8, 59];
    const whole = changed(
      packet(unicast, { ...flow6, extensions: [HIDDEN[0]!, HIDDEN[0]!] }),
      NEXT_OF_THE_SECOND,
      NO_NEXT_HEADER,
    );
    for (const length of [8, 11, 15]) expect(runPort(l2, changed(whole, 18, 0, length)).returnValue).toBe(SHOT);
    expect(l2.counts()).toEqual({ drop_malformed: 3 });
    expect(runPort(l2, changed(whole, 18, 0, 16)).returnValue).toBe(REDIRECT);
  });

  test('more extension headers than anybody uses are an evasion', () => {
    const extensions = Array.from({ length: 7 }, () => HIDDEN[0]!);
    expect(outcome(packet(unicast, { ...flow6, extensions }))).toEqual(dropped('drop_malformed'));
    expect(runPort(l2, packet(unicast, { ...flow6, extensions: extensions.slice(1) })).returnValue).toBe(REDIRECT);
  });
});

describe('ARP', () => {
  const reply: Arp = {
    operation: 2,
    senderMac: OWN.mac,
    sender: OWN.ipv4,
    targetMac: NEAR.mac,
    target: NEAR.ipv4,
  };

  test('of the port itself passes', () => {
    expect(outcome(arp(unicast, reply))).toEqual(FORWARDED);
  });

  test.each<[string, Partial<Arp>, L2Reason]>([
    ['another sender’s MAC', { senderMac: STRANGER }, 'drop_forged_arp'],
    ['another sender’s address', { sender: NEAR.ipv4 }, 'drop_forged_arp'],
    ['an answer in the name of nobody', { sender: '0.0.0.0' }, 'drop_forged_arp'],
    ['a gratuitous answer for another address', { sender: NEAR.ipv4, target: NEAR.ipv4 }, 'drop_forged_arp'],
    ['an operation that is none', { operation: 3 }, 'drop_malformed'],
  ])('with %s is dropped', (_, more, reason) =>
    expect(outcome(arp(unicast, { ...reply, ...more }))).toEqual(dropped(reason)),
  );

  test.each<[string, number, number]>([
    ['hardware', 1, 6],
    ['protocol', 2, 0xdd],
    ['length of MACs', 4, 8],
    ['length of addresses', 5, 16],
  ])('with another %s is dropped', (_, at, byte) =>
    expect(outcome(changed(arp(unicast, reply), 14 + at, byte))).toEqual(dropped('drop_malformed')),
  );

  test('that is cut off is dropped', () => {
    expect(outcome(ethernet(unicast, TYPE.arp, arpBytes(reply).slice(0, 27)))).toEqual(dropped('drop_malformed'));
  });

  test.each<[string, Partial<Arp>, L2Reason]>([
    ['for another MAC', { targetMac: STRANGER }, 'drop_forged_arp'],
    ['with an address', { sender: OWN.ipv4 }, 'drop_forged_arp'],
    ['that is an answer', { operation: 4 }, 'drop_malformed'],
  ])('RARP %s is dropped', (_, more, reason) => {
    const request = { operation: 3, senderMac: OWN.mac, sender: '0.0.0.0', targetMac: OWN.mac, target: '0.0.0.0' };
    expect(outcome(arp({ from: OWN.mac, to: BROADCAST }, { ...request, ...more }, TYPE.rarp))).toEqual(dropped(reason));
  });
});

describe('neighbor discovery', () => {
  const to = { source: OWN.ipv6, destination: NEAR.ipv6 };
  const own = advertisement(OWN.ipv6, 0x60, macOption(2, OWN.mac));
  const UNKNOWN = 'fd99::77';

  test.each<[string, readonly number[]]>([
    ['an advertisement of an own address', own],
    ['a solicitation', solicitation(UNKNOWN, macOption(1, OWN.mac))],
    ['a solicitation with a nonce', solicitation(UNKNOWN, [14, 1, 1, 2, 3, 4, 5, 6, ...macOption(1, OWN.mac)])],
    ['a router solicitation', [133, 0, 0, 0, 0, 0, 0, 0, ...macOption(1, OWN.mac)]],
  ])('%s passes', (_, message) => expect(outcome(icmpv6(unicast, { ...to, message }))).toEqual(FORWARDED));

  test.each<[string, readonly number[], L2Reason]>([
    ['an advertisement of another’s address', advertisement(NEAR.ipv6, 0x60, macOption(2, OWN.mac)), 'drop_forged_nd'],
    ['an advertisement with another’s MAC', advertisement(OWN.ipv6, 0x60, macOption(2, FAR.mac)), 'drop_forged_nd'],
    ['a solicitation with another’s MAC', solicitation(UNKNOWN, macOption(1, FAR.mac)), 'drop_forged_nd'],
    [
      'a router solicitation with another’s MAC',
      [133, 0, 0, 0, 0, 0, 0, 0, ...macOption(1, FAR.mac)],
      'drop_forged_nd',
    ],
    [
      'a MAC of 14 bytes',
      advertisement(OWN.ipv6, 0x60, [2, 2, ...macBytes(OWN.mac), ...new Uint8Array(8)]),
      'drop_forged_nd',
    ],
    [
      'a forged MAC behind another option',
      solicitation(UNKNOWN, [14, 1, 0, 0, 0, 0, 0, 0, ...macOption(1, FAR.mac)]),
      'drop_forged_nd',
    ],
    ['an option of no length', solicitation(UNKNOWN, [14, 0, 0, 0, 0, 0, 0, 0]), 'drop_malformed'],
    ['an option past the end', solicitation(UNKNOWN, [14, 2, 0, 0, 0, 0, 0, 0]), 'drop_malformed'],
    ['a message without its target', [136, 0, 0, 0, 0, 0, 0, 0], 'drop_malformed'],
    ['another code', [...own.slice(0, 1), 1, ...own.slice(2)], 'drop_malformed'],
  ])('%s is dropped', (_, message, reason) =>
    expect(outcome(icmpv6(unicast, { ...to, message }))).toEqual(dropped(reason)),
  );

  test('from another hop is dropped', () => {
    expect(outcome(icmpv6(unicast, { ...to, message: own, hopLimit: 254 }))).toEqual(dropped('drop_malformed'));
  });

  test.each<[string, number, readonly number[]]>([
    ['hop-by-hop options', 0, [58, 0, 0, 0, 0, 0, 0, 0]],
    ['destination options', 60, [58, 0, 0, 0, 0, 0, 0, 0]],
    ['an authentication header', 51, [58, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]],
    ['a fragment header', 44, [58, 0, 0, 1, 0, 0, 0, 7]],
  ])('behind %s is dropped (RFC 6980)', (_, first, bytes) => {
    expect(outcome(icmpv6(unicast, { ...to, message: own, extensions: { first, bytes } }))).toEqual(
      dropped('drop_nd_extensions'),
    );
  });

  test.each([
    ['router advertisements', 134],
    ['redirects', 137],
  ])('%s come from trusted ports alone', (_, type) => {
    const sent = icmpv6(unicast, { ...to, message: [type, 0, 0, 0, ...new Uint8Array(36)] });
    expect(outcome(sent)).toEqual(dropped('drop_router'));
    allow({ trusted: true });
    expect(runPort(l2, sent).returnValue).toBe(REDIRECT);
  });

  test('from :: only a solicitation passes, and a listener’s report', () => {
    const none = { source: '::', destination: 'ff02::16' };
    const group = { from: OWN.mac, to: '33:33:00:00:00:16' };
    const report = { first: 0, bytes: [58, 0, 5, 2, 0, 0, 1, 0] };
    runPort(l2, icmpv6(group, { ...none, message: [143, 0, 0, 0, 0, 0, 0, 0], hopLimit: 1, extensions: report }));
    expect(l2.counts()).toEqual({ replicated: 1 });
    runPort(l2, icmpv6(group, { ...none, message: [128, 0, 0, 0, 0, 0, 0, 0] }));
    runPort(l2, icmpv6(group, { ...none, message: own }));
    expect(l2.counts()).toEqual({ replicated: 1, drop_forged_address: 2 });
  });

  test('ICMPv6 that is no neighbor discovery may have extension headers', () => {
    const extensions = { first: 60, bytes: [58, 0, 0, 0, 0, 0, 0, 0] };
    expect(
      outcome(icmpv6(unicast, { ...to, message: [128, 0, 0, 0, ...bytesOf('192.0.2.1')], extensions, hopLimit: 64 })),
    ).toEqual(FORWARDED);
  });
});
