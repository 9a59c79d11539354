import { macBytes } from '@unbounded/ip';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import {
  configKey,
  counter,
  echoAddresses,
  encapConfig,
  type Endpoint,
  endpointV4,
  endpointV6,
  groupKey,
  type GroupMember,
  innerMac,
  lpmKeyV4,
  lpmKeyV6,
  MAPS,
  nexthopGroup,
  type Stat,
  STATS,
  statsKey,
} from '@unbounded/bpf-maps';
import { type BpfMap, type BpfObject, loadObject, readObject, type TestRunResult } from '@unbounded/libbpf-ts';
import * as fc from 'fast-check';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { ANCHOR_MACS, type Flow, frame, ip, isSummed, withChecksums } from './packets.ts';

/** The kernel runs no program on a packet that is shorter than the IP header which its type promises. */
const SHORTEST = 14 + 40;
const [SHOT, REDIRECT, UNSPEC] = [2, 7, 0xffff_ffff];
const path = new URL('build/unbounded_encap.bpf.o', import.meta.url).pathname;

let object: BpfObject;
let v4: BpfMap<string, Endpoint>;
let v6: BpfMap<string, Endpoint>;
let groups: BpfMap<number, readonly GroupMember[]>;

beforeAll(() => void execFileSync(new URL('build.sh', import.meta.url).pathname, { stdio: 'inherit' }));
beforeEach(() => {
  object = loadObject(readFileSync(path), { name: 'encap' });
  v4 = object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4);
  v6 = object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6);
  groups = object.map('unbounded_nexthop_groups', groupKey, nexthopGroup);
});
afterEach(() => object.close());

const configure = (config: Parameters<typeof encapConfig.write>[0]): void =>
  object.map('unbounded_config', configKey, encapConfig).set(0, config);
const run = (program: string, data: Uint8Array): TestRunResult => object.program(program).testRun({ data });
const encap = (flow: Flow): TestRunResult => run('unbounded_encap', frame(flow));

/** The counters that are not zero. */
const counts = (): Partial<Record<Stat, number>> => {
  using stats = object.perCpuMap('unbounded_stats', statsKey, counter);
  return Object.fromEntries(
    [...stats.entries()]
      .map(([stat, values]) => [stat, Number(values.reduce((sum, value) => sum + value, 0n))])
      .filter(([, count]) => count !== 0),
  );
};

const vxlan = { remote: '192.0.2.7', vni: 1, ifindex: 1, protocol: 'vxlan', setKey: true, healthy: true } as const;
const flow4: Flow = { source: '100.64.1.2', destination: '100.64.2.3' };
const flow6: Flow = { source: 'fd00:1::2', destination: 'fd00:2::3' };

describe('layouts', () => {
  test('the object’s maps are those that user space writes', () => {
    const declared = Object.fromEntries(
      readObject(readFileSync(path)).maps.map(({ name, keySize, valueSize, maxEntries }) => [
        name,
        { keyBytes: keySize, valueBytes: valueSize, maxEntries },
      ]),
    );
    expect(declared).toEqual(MAPS);
  });

  test('counters have the same names in the same order', () => {
    const header = readFileSync(new URL('include/stats.h', import.meta.url), 'utf8');
    const names = [...header.matchAll(/^\tSTAT_(\w+)/gm)]
      .map(([, name = '']) => name.toLowerCase())
      .filter((name) => name !== 'count');
    expect(names).toEqual([...STATS]);
  });
});

describe('an echo', () => {
  const OWN = { ipv4: '100.64.1.0', ipv6: 'fd00:1::ff' };
  const EACH = [
    ['v4', { source: OWN.ipv4, destination: '100.64.2.0' }, '100.64.2.0/32'],
    ['v6', { source: OWN.ipv6, destination: 'fd00:2::ff' }, 'fd00:2::ff/128'],
  ] as const;
  const returnTo = (family: 'v4' | 'v6', prefix: string): void => {
    (family === 'v4' ? v4 : v6).set(prefix, { ...vxlan, echo: true });
    object.map('unbounded_echo', configKey, echoAddresses).set(0, OWN);
  };
  const sent = (flow: Flow): Uint8Array => encapsulated(withChecksums(frame(flow))).data;
  const encapsulated = (data: Uint8Array): TestRunResult => run('unbounded_encap', data);

  test.each(EACH)(
    '%s: of the node goes to the node itself by the gateway, with right checksums',
    (family, flow, prefix) => {
      returnTo(family, prefix);
      const data = sent(flow);
      const wanted = withChecksums(frame({ ...flow, destination: flow.source }));
      wanted.set(macBytes(innerMac(vxlan.remote)), 0);
      expect(data).toEqual(wanted);
      expect(isSummed(data)).toBe(true);
    },
  );

  test.each(EACH)('%s: nobody else’s packet to that address is turned round', (family, flow, prefix) => {
    returnTo(family, prefix);
    for (const other of [
      { ...flow, source: family === 'v4' ? '100.64.1.2' : 'fd00:1::2' },
      { ...flow, protocol: 6 },
    ]) {
      const wanted = frame(other);
      wanted.set(macBytes(innerMac(vxlan.remote)), 0);
      expect(encap(other).data).toEqual(wanted);
    }
  });

  test.each(EACH)(
    '%s: without an own address, or by another entry, nothing is turned round',
    (family, flow, prefix) => {
      returnTo(family, prefix);
      object.map('unbounded_echo', configKey, echoAddresses).set(0, {});
      const unchanged = withChecksums(frame(flow));
      unchanged.set(macBytes(innerMac(vxlan.remote)), 0);
      expect(sent(flow)).toEqual(unchanged);
      (family === 'v4' ? v4 : v6).set(prefix, vxlan);
      object.map('unbounded_echo', configKey, echoAddresses).set(0, OWN);
      expect(sent(flow)).toEqual(unchanged);
    },
  );

  test('through a member of a group it goes as well', () => {
    groups.set(1, [{ ...vxlan, remote: '2001:db8::7', echo: true, weight: 1 }]);
    v4.set('100.64.2.0/32', { ...vxlan, group: 1 });
    object.map('unbounded_echo', configKey, echoAddresses).set(0, OWN);
    expect(Array.from(sent({ source: OWN.ipv4, destination: '100.64.2.0' }).subarray(30, 34))).toEqual([100, 64, 1, 0]);
  });
});

describe('the anchor', () => {
  test.each<['v4' | 'v6', Flow, string, string]>([
    ['v4', flow4, '100.64.2.0/24', '192.0.2.7'],
    ['v6', flow6, 'fd00:2::/64', '192.0.2.7'],
    ['v6', flow6, 'fd00:2::/64', '2001:db8::a0b:c0d'],
  ])('%s: only the destination MAC changes, and it is the next hop’s', (family, flow, prefix, remote) => {
    (family === 'v4' ? v4 : v6).set(prefix, { ...vxlan, remote });
    const result = encap(flow);
    expect(result.returnValue).toBe(REDIRECT);
    const wanted = frame(flow);
    wanted.set(macBytes(innerMac(remote)), 0);
    expect(result.data).toEqual(wanted);
    expect(counts()).toEqual({ redirected_vxlan: 1 });
  });

  test('writes the configured source MAC', () => {
    v4.set('100.64.2.0/24', vxlan);
    configure({ ownMac: '02:0a:01:00:15:ff', anySource: false });
    expect(Array.from(encap(flow4).data.slice(0, 12))).toEqual([
      ...macBytes(innerMac('192.0.2.7')),
      ...macBytes('02:0a:01:00:15:ff'),
    ]);
  });

  test.each(['geneve', 'vxlan', 'ipip'] as const)('%s is counted under its name', (protocol) => {
    v4.set('100.64.2.0/24', { ...vxlan, protocol });
    expect(encap(flow4).returnValue).toBe(REDIRECT);
    expect(counts()).toEqual({ [`redirected_${protocol}`]: 1 });
  });

  test('WireGuard gets the packet as it is', () => {
    v4.set('100.64.2.0/24', { vni: 0, ifindex: 1, protocol: 'wireguard', setKey: false, healthy: true });
    const result = encap(flow4);
    expect(result.returnValue).toBe(REDIRECT);
    expect(result.data).toEqual(frame(flow4));
  });

  test('the longest prefix decides', () => {
    v4.set('100.64.0.0/16', vxlan);
    v4.set('100.64.2.0/24', { ...vxlan, remote: '192.0.2.8' });
    v4.set('100.64.2.3/32', { ...vxlan, remote: '192.0.2.9' });
    const last = (destination: string): number | undefined => encap({ ...flow4, destination }).data[4];
    expect(['100.64.9.9', '100.64.2.9', '100.64.2.3'].map(last)).toEqual([7, 8, 9]);
  });

  test.each<[string, Uint8Array, Stat]>([
    ['without endpoint', frame(flow4), 'drop_no_endpoint'],
    ['of IPv6 without endpoint', frame(flow6), 'drop_no_endpoint'],
    ['of ARP', Uint8Array.from([...ANCHOR_MACS, 0x08, 0x06, ...new Uint8Array(46)]), 'drop_not_ip'],
    [
      'with an IPv4 header of 16 bytes',
      frame(flow4).map((byte, index) => (index === 14 ? 0x44 : byte)),
      'drop_malformed',
    ],
  ])('a packet %s is dropped, unchanged and counted: it never leaves in the clear', (_, packet, reason) => {
    const result = run('unbounded_encap', packet);
    expect(result.returnValue).toBe(SHOT);
    expect(result.data).toEqual(packet);
    expect(counts()).toEqual({ [reason]: 1 });
  });

  test('whatever comes is redirected or dropped, and nothing else', () => {
    v4.set('0.0.0.0/0', vxlan);
    v6.set('::/0', vxlan);
    const packet = fc.oneof(
      fc.uint8Array({ minLength: SHORTEST, maxLength: 200 }),
      fc
        .tuple(
          fc.constantFrom(frame(flow4), frame(flow6)),
          fc.array(fc.tuple(fc.nat(100), fc.nat(255)), { maxLength: 6 }),
          fc.integer({ min: SHORTEST, max: 100 }),
        )
        .map(([bytes, changes, length]) => {
          const copy = bytes.slice(0, length);
          for (const [at, byte] of changes) copy[at % copy.length] = byte;
          return copy;
        }),
    );
    fc.assert(
      fc.property(
        packet,
        fc.constantFrom(
          'unbounded_encap',
          'unbounded_encap_l3',
          'unbounded_tunnel_ingress',
          'unbounded_tunnel_ingress_l3',
        ),
        (bytes, program) => {
          const anchor = program.startsWith('unbounded_encap');
          expect(anchor ? [SHOT, REDIRECT] : [SHOT, UNSPEC]).toContain(run(program, bytes).returnValue);
        },
      ),
      { numRuns: 500 },
    );
  });
});

describe('an anchor without Ethernet header', () => {
  // The test run gives every packet an Ethernet header: this source address makes its 13th and 14th byte, the type, IPv4.
  const flow: Flow = { source: '8.0.1.2', destination: '100.64.2.3' };

  test('gives packets for a VXLAN one', () => {
    v4.set('100.64.2.0/24', vxlan);
    configure({ ownMac: '02:0a:01:00:15:ff', anySource: false });
    const result = run('unbounded_encap_l3', ip(flow));
    expect(result.returnValue).toBe(REDIRECT);
    expect([...result.data]).toEqual([
      ...macBytes(innerMac('192.0.2.7')),
      ...macBytes('02:0a:01:00:15:ff'),
      0x08,
      0x00,
      ...ip(flow),
    ]);
  });

  test.each(['wireguard', 'ipip'] as const)('leaves packets for %s as they are', (protocol) => {
    v4.set('100.64.2.0/24', { ...vxlan, protocol, setKey: protocol === 'ipip' });
    const result = run('unbounded_encap_l3', ip(flow));
    expect(result.returnValue).toBe(REDIRECT);
    expect(result.data).toEqual(ip(flow));
  });
});

describe('a next-hop group', () => {
  const member = (last: number, more: Partial<GroupMember> = {}): GroupMember => ({
    ...vxlan,
    remote: `192.0.2.${last}`,
    weight: 1,
    ...more,
  });
  const flows = Array.from({ length: 3000 }, (_, index): Flow => ({ ...flow4, ports: [1024 + index, 443] }));
  const choose = (flow: Flow): number | undefined => {
    const { returnValue, data } = encap(flow);
    return returnValue === REDIRECT ? data[4] : undefined;
  };
  const useGroup = (members: readonly GroupMember[]): void => groups.set(5, members);
  beforeEach(() => {
    v4.set('100.64.2.0/24', { ...vxlan, group: 5 });
    v6.set('fd00:2::/64', { ...vxlan, group: 5 });
  });

  test('shares flows by weight', () => {
    useGroup([member(1), member(2), member(3, { weight: 2 })]);
    const chosen = flows.map(choose);
    const share = (last: number): number => chosen.filter((one) => one === last).length / flows.length;
    expect(share(1)).toBeCloseTo(0.25, 1);
    expect(share(2)).toBeCloseTo(0.25, 1);
    expect(share(3)).toBeGreaterThan(0.46);
    expect(share(3)).toBeLessThan(0.54);
  });

  test('moves only the flows of the member that fails, and gives them back', () => {
    const all = [member(1), member(2), member(3), member(4)];
    useGroup(all);
    const before = flows.map(choose);
    useGroup(all.map((one, index) => (index === 1 ? { ...one, healthy: false } : one)));
    const after = flows.map(choose);
    expect(after).not.toContain(2);
    expect(before.filter((one, index) => one !== 2 && one !== after[index])).toEqual([]);
    useGroup(all);
    expect(flows.map(choose)).toEqual(before);
    useGroup(all.filter((_, index) => index !== 1));
    expect(flows.map(choose)).toEqual(after);
  });

  test.each<[string, readonly GroupMember[] | undefined]>([
    ['that is not there', undefined],
    ['without members', []],
    ['whose members are all unhealthy', [member(1, { healthy: false })]],
    ['whose members weigh nothing', [member(1, { weight: 0 })]],
  ])('%s drops', (_, members) => {
    if (members) useGroup(members);
    expect(encap(flow4).returnValue).toBe(SHOT);
    expect(counts()).toEqual({ drop_no_member: 1 });
  });

  test('on an IPv6 underlay serves IPv4 packets too', () => {
    useGroup([member(1, { remote: '2001:db8::1:2' })]);
    expect(Array.from(encap(flow4).data.slice(0, 6))).toEqual([...macBytes(innerMac('2001:db8::1:2'))]);
  });

  test('sends all fragments of a packet one way', () => {
    useGroup(Array.from({ length: 16 }, (_, index) => member(index + 1)));
    const MORE = 0x2000;
    const pieces: Flow[] = [
      { ...flow4, fragment: MORE },
      { ...flow4, fragment: MORE | 185, ports: [1, 2] },
      { ...flow4, fragment: 370, ports: [3, 4] },
    ];
    expect(new Set(pieces.map(choose)).size).toBe(1);
    const head = Uint8Array.from([0, 0, 0, 1, 0, 0, 0, 9]);
    const pieces6: Flow[] = [
      { ...flow6, extensions: [[44, head]] },
      { ...flow6, extensions: [[44, head]], ports: [1, 2] },
    ];
    expect(new Set(pieces6.map(choose)).size).toBe(1);
  });

  test.each<[string, Flow]>([
    ['IPv4 options', { ...flow4, options: 8 }],
    ['an IPv6 hop-by-hop header', { ...flow6, extensions: [[0, new Uint8Array(8)]] }],
    [
      'IPv6 routing and destination headers',
      {
        ...flow6,
        extensions: [
          [43, Uint8Array.from([0, 2, ...new Uint8Array(22)])],
          [60, new Uint8Array(8)],
        ],
      },
    ],
  ])('looks at the ports behind %s', (_, flow) => {
    useGroup(Array.from({ length: 16 }, (_unused, index) => member(index + 1)));
    const plain = (ports: readonly [number, number]): number | undefined => {
      const { options: _options, extensions: _extensions, ...rest } = flow;
      return choose({ ...rest, ports });
    };
    const behind = [1, 2, 3, 4, 5, 6, 7, 8].map((port) => choose({ ...flow, ports: [port, 443] }));
    expect(behind).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((port) => plain([port, 443])));
    expect(new Set(behind).size).toBeGreaterThan(1);
  });
});

describe('tunnel ingress', () => {
  test('drops what comes without tunnel metadata', () => {
    v4.set('100.64.1.0/24', vxlan);
    expect(run('unbounded_tunnel_ingress', frame(flow4)).returnValue).toBe(SHOT);
    expect(counts()).toEqual({ drop_key: 1 });
  });

  test('lets everything through where sources are not to be checked', () => {
    configure({ anySource: true });
    expect(run('unbounded_tunnel_ingress', frame(flow4)).returnValue).toBe(UNSPEC);
    expect(counts()).toEqual({ received: 1 });
  });
});
