import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  advertisement,
  type Arp,
  arp,
  BROADCAST,
  bytesOf,
  ethernet,
  icmpv6,
  macOption,
  NOBODY,
  packet,
  solicitation,
  solicitedNode,
  TYPE,
} from './l2-frames.ts';
import {
  FAR,
  type L2Switch,
  buildSwitch,
  MTU,
  NEAR,
  NETWORK,
  outcomeAtPort,
  OWN,
  populate,
  PORT,
  REDIRECT,
  runPort,
  SHOT,
} from './l2-switch.ts';
import { checksum, type Flow, ip } from './packets.ts';

/** What is answered at the port itself: who has an address, and that a packet is too big. */

let l2: L2Switch;

beforeAll(() => void (l2 = buildSwitch()));
beforeEach(() => populate(l2));
afterAll(() => l2[Symbol.dispose]());

const answer = (data: Uint8Array): Uint8Array => {
  const result = runPort(l2, data);
  expect(result.returnValue).toBe(REDIRECT);
  return result.data;
};
const outcome = (data: Uint8Array) => outcomeAtPort(l2, data);

describe('ARP', () => {
  const everybody = { from: OWN.mac, to: BROADCAST };
  const request: Arp = { operation: 1, senderMac: OWN.mac, sender: OWN.ipv4, target: FAR.ipv4 };
  const reply: Arp = { operation: 2, senderMac: FAR.mac, sender: FAR.ipv4, targetMac: OWN.mac, target: OWN.ipv4 };

  test.each<[string, string]>([
    ['by broadcast', BROADCAST],
    ['of an entry that grows old, by unicast', FAR.mac],
  ])('a request %s for an address with an entry is answered', (_, to) => {
    expect(answer(arp({ from: OWN.mac, to }, request))).toEqual(arp({ from: FAR.mac, to: OWN.mac }, reply));
    expect(l2.counts()).toEqual({ answered_arp: 1 });
  });

  test('a padded request is answered in its length', () => {
    const padded = (bytes: Uint8Array): Uint8Array => Uint8Array.from([...bytes, ...new Uint8Array(18)]);
    expect(answer(padded(arp(everybody, request)))).toEqual(padded(arp({ from: FAR.mac, to: OWN.mac }, reply)));
  });

  test('a probe for another endpoint’s address is answered: it is taken', () => {
    expect(answer(arp(everybody, { ...request, sender: '0.0.0.0' }))).toEqual(
      arp({ from: FAR.mac, to: OWN.mac }, { ...reply, target: '0.0.0.0' }),
    );
  });

  test('an address of another network has no entry here', () => {
    l2.neighbors.delete({ network: NETWORK, address: FAR.ipv4 });
    l2.neighbors.set({ network: NETWORK + 1, address: FAR.ipv4 }, { mac: FAR.mac });
    expect(outcome(arp(everybody, request))).toEqual([SHOT, { drop_broadcast: 1 }]);
  });

  test.each<[string, Partial<Arp>]>([
    ['a probe for the own address', { sender: '0.0.0.0', target: OWN.ipv4 }],
    ['a probe for an address that has the own MAC', { sender: '0.0.0.0', target: '10.9.0.50' }],
  ])('%s is left alone', (_, more) => {
    l2.neighbors.set({ network: NETWORK, address: '10.9.0.50' }, { mac: OWN.mac });
    expect(outcome(arp(everybody, { ...request, ...more }))).toEqual([SHOT, { drop_own_probe: 1 }]);
  });

  test('a request for an address without an entry goes by the network’s policy', () => {
    const unknown = arp(everybody, { ...request, target: '10.9.0.77' });
    expect(outcome(unknown)).toEqual([SHOT, { drop_broadcast: 1 }]);
    l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
    expect(outcome(unknown)).toEqual([SHOT, { drop_broadcast: 1, replicated: 1 }]);
  });

  test.each<[string, Arp, number]>([
    ['a gratuitous request', { ...request, target: OWN.ipv4 }, TYPE.arp],
    ['a gratuitous answer', { ...reply, senderMac: OWN.mac, sender: OWN.ipv4 }, TYPE.arp],
    ['RARP', { operation: 3, senderMac: OWN.mac, sender: '0.0.0.0', targetMac: OWN.mac, target: '0.0.0.0' }, TYPE.rarp],
  ])('%s is an announcement, which every network replicates', (_, message, type) => {
    expect(outcome(arp(everybody, message, type))).toEqual([SHOT, { replicated: 1 }]);
  });
});

describe('neighbor discovery', () => {
  const asked = solicitedNode(FAR.ipv6);
  const request = icmpv6(
    { from: OWN.mac, to: asked.mac },
    { source: OWN.ipv6, destination: asked.address, message: solicitation(FAR.ipv6, macOption(1, OWN.mac)) },
  );
  const probe = (target: string): Uint8Array => {
    const { mac, address } = solicitedNode(target);
    return icmpv6({ from: OWN.mac, to: mac }, { source: '::', destination: address, message: solicitation(target) });
  };
  const wanted = (flags: number): Uint8Array =>
    icmpv6(
      { from: FAR.mac, to: OWN.mac },
      { source: FAR.ipv6, destination: OWN.ipv6, message: advertisement(FAR.ipv6, flags, macOption(2, FAR.mac)) },
    );

  test('a solicitation for an address with an entry is answered, with the right checksum', () => {
    expect(answer(request)).toEqual(wanted(0x60));
    expect(l2.counts()).toEqual({ answered_nd: 1 });
  });

  test('a router says that it is one', () => {
    l2.neighbors.set({ network: NETWORK, address: FAR.ipv6 }, { mac: FAR.mac, router: true });
    expect(answer(request)).toEqual(wanted(0xe0));
  });

  test('one with more options is answered as well', () => {
    const options = [...macOption(1, OWN.mac), 14, 1, 1, 2, 3, 4, 5, 6];
    const macs = { from: OWN.mac, to: FAR.mac };
    const message = solicitation(FAR.ipv6, options);
    expect(answer(icmpv6(macs, { source: OWN.ipv6, destination: FAR.ipv6, message }))).toEqual(wanted(0x60));
  });

  test('a probe for another endpoint’s address is answered to all nodes', () => {
    expect(answer(probe(FAR.ipv6))).toEqual(
      icmpv6(
        { from: FAR.mac, to: '33:33:00:00:00:01' },
        { source: FAR.ipv6, destination: 'ff02::1', message: advertisement(FAR.ipv6, 0x20, macOption(2, FAR.mac)) },
      ),
    );
  });

  test('a probe for the own address is left alone', () => {
    expect(outcome(probe(OWN.ipv6))).toEqual([SHOT, { drop_own_probe: 1 }]);
  });

  test('a solicitation for an address without an entry goes by the network’s policy', () => {
    expect(outcome(probe('fd99::77'))).toEqual([SHOT, { drop_broadcast: 1 }]);
    l2.networks.set(NETWORK, { mtu: MTU, broadcast: true });
    expect(outcome(probe('fd99::77'))).toEqual([SHOT, { drop_broadcast: 1, replicated: 1 }]);
  });

  test('an unsolicited advertisement is an announcement, which every network replicates', () => {
    const message = advertisement(OWN.ipv6, 0x20, macOption(2, OWN.mac));
    const all = { from: OWN.mac, to: '33:33:00:00:00:01' };
    expect(outcome(icmpv6(all, { source: OWN.ipv6, destination: 'ff02::1', message }))).toEqual([
      SHOT,
      { replicated: 1 },
    ]);
  });
});

describe('a packet longer than the MTU', () => {
  const macs = { from: OWN.mac, to: FAR.mac };
  const [QUOTE, DONT_FRAGMENT] = [512, 0x4000];
  const words = (...values: readonly number[]): number[] => values.flatMap((value) => [value >> 8, value & 0xff]);
  const long = (flow: Flow, bytes: number): Uint8Array => {
    const short = ip(flow);
    const whole = Uint8Array.from([...short, ...new Uint8Array(bytes - short.length)]);
    const isIpv6 = flow.destination.includes(':');
    whole.set(isIpv6 ? words(bytes - 40) : words(bytes), isIpv6 ? 4 : 2);
    return whole;
  };
  const framed = (flow: Flow, bytes = MTU + 1): Uint8Array =>
    ethernet(macs, flow.destination.includes(':') ? TYPE.ipv6 : TYPE.ipv4, long(flow, bytes));
  const flow4: Flow = { source: OWN.ipv4, destination: FAR.ipv4, fragment: DONT_FRAGMENT };
  const flow6: Flow = { source: OWN.ipv6, destination: FAR.ipv6 };

  test('of IPv4 is answered by fragmentation needed, with right checksums', () => {
    const icmp = Uint8Array.from([3, 4, 0, 0, 0, 0, ...words(MTU), ...long(flow4, MTU + 1).subarray(0, QUOTE)]);
    icmp.set(words(checksum(icmp)), 2);
    const header = Uint8Array.from([
      ...[0x45, 0, ...words(20 + icmp.length), 0, 0, 0, 0, 64, 1, 0, 0],
      ...[...bytesOf(FAR.ipv4), ...bytesOf(OWN.ipv4)],
    ]);
    header.set(words(checksum(header)), 10);
    expect(answer(framed(flow4))).toEqual(ethernet({ from: FAR.mac, to: OWN.mac }, TYPE.ipv4, [...header, ...icmp]));
    expect(l2.counts()).toEqual({ answered_too_big: 1 });
  });

  test('of IPv6 is answered by packet too big, with the right checksum', () => {
    const quote = long(flow6, MTU + 1).subarray(0, QUOTE);
    expect(answer(framed(flow6))).toEqual(
      icmpv6(
        { from: FAR.mac, to: OWN.mac },
        { source: FAR.ipv6, destination: OWN.ipv6, message: [2, 0, 0, 0, 0, 0, ...words(MTU), ...quote], hopLimit: 64 },
      ),
    );
  });

  test.each([
    ['IPv4', flow4],
    ['IPv6', flow6],
  ])('%s of just the MTU goes on', (_, flow) => {
    expect(outcome(framed(flow, MTU))).toEqual([REDIRECT, { encapsulated: 1 }]);
  });

  test.each<[string, Flow]>([
    ['that may be fragmented', { ...flow4, fragment: 0 }],
    ['that is a later fragment', { ...flow4, fragment: DONT_FRAGMENT | 100 }],
    ['for an IPv4 group', { ...flow4, destination: '224.0.0.9' }],
    ['for everybody', { ...flow4, destination: '255.255.255.255' }],
    ['that is an ICMP error', { ...flow4, protocol: 1, ports: [0x0304, 0] }],
    ['for an IPv6 group', { ...flow6, destination: 'ff02::1' }],
    ['that is an ICMPv6 error', { ...flow6, protocol: 58, ports: [0x0200, 0] }],
  ])('%s is dropped without an answer', (_, flow) => {
    expect(outcome(framed(flow))).toEqual([SHOT, { drop_too_big: 1 }]);
  });

  test('that is an echo is answered', () => {
    expect(outcome(framed({ ...flow4, protocol: 1, ports: [0x0800, 0] }))).toEqual([REDIRECT, { answered_too_big: 1 }]);
  });

  test('is answered ten times at once, and not without a bucket', () => {
    for (let sent = 0; sent < 30; sent++) runPort(l2, framed(flow4));
    const { answered_too_big: answered = 0, drop_too_big: dropped = 0 } = l2.counts();
    expect(answered + dropped).toBe(30);
    expect(answered).toBeGreaterThanOrEqual(10);
    expect(answered).toBeLessThan(20);
    l2.buckets.delete(PORT);
    expect(runPort(l2, framed(flow4)).returnValue).toBe(SHOT);
  });
});

test('a frame for nobody, 00:00:00:00:00:00, has no entry', () => {
  expect(outcome(packet({ from: OWN.mac, to: NOBODY }, { source: OWN.ipv4, destination: NEAR.ipv4 }))).toEqual([
    SHOT,
    { drop_unknown: 1 },
  ]);
});
