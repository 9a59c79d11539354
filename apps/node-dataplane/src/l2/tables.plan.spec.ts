import { L2_MAPS, L2_REASONS } from '@unbounded/bpf-maps/l2';
import { macText, parseAddress, parsePrefix } from '@unbounded/ip';
import { type L2Plan, MOST_ENDPOINTS_OF_NODE, planL2 } from '@unbounded/l2';
import { endpoint, network, snapshotOf } from '@unbounded/l2/testdata';
import { describe, expect, test } from 'vitest';
import { planL2Tables } from './tables.plan.ts';

const place = (ports: readonly string[]) => ({
  locator: parsePrefix('fd53:0:0:1::/64'),
  entry: { index: 5, mac: '02:00:00:00:00:aa' },
  ifindexes: new Map(ports.map((name, index) => [name, index + 10])),
});
const planOf = (...endpoints: ReturnType<typeof endpoint>[]): L2Plan =>
  planL2(snapshotOf('n1', [network('lan', { broadcast: 'Replicate' })], endpoints));
const plan = planOf(endpoint(1, 'n1'), endpoint(2, 'n1', { isTrusted: true }), endpoint(3, 'n2'));

describe('the contents of the maps', () => {
  test('lead to ports of the node by their numbers, and to other nodes by their locators', () => {
    const tables = planL2Tables(plan, place(['l2-e1', 'l2-e2']));
    expect(tables.limits).toEqual([]);
    expect(tables.config).toEqual([[0, { locator: 'fd53:0:0:1::', ifindex: 5, mac: '02:00:00:00:00:aa' }]]);
    expect(tables.networks).toEqual([[7, { broadcast: true, mtu: 1366 }]]);
    expect(tables.fdb).toEqual([
      [
        { network: 7, mac: '02:00:00:00:00:01' },
        { segment: 0, sequence: 0n, ifindex: 10 },
      ],
      [
        { network: 7, mac: '02:00:00:00:00:02' },
        { segment: 0, sequence: 0n, ifindex: 11, trusted: true },
      ],
      [
        { network: 7, mac: '02:00:00:00:00:03' },
        { segment: 0, sequence: 0n, locator: 'fd53:0:0:2::' },
      ],
    ]);
    expect(tables.flood).toEqual([[7, { ports: [10, 11], locators: ['fd53:0:0:2::'] }]]);
    expect(tables.ports.map(([ifindex, { trusted }]) => [ifindex, trusted])).toEqual([
      [10, undefined],
      [11, true],
    ]);
    expect(tables.addresses.map(([{ ifindex, address }]) => `${ifindex} ${address}`)).toEqual([
      '10 192.0.2.1',
      '10 2001:db8::1',
      '10 fe80::ff:fe00:1',
      '11 192.0.2.2',
      '11 2001:db8::2',
      '11 fe80::ff:fe00:2',
    ]);
    const linkLocals = tables.neighbors.filter(([{ address }]) => address.startsWith('fe80:'));
    expect(linkLocals.map(([{ address }, { mac }]) => [address, mac])).toEqual([
      ['fe80::ff:fe00:1', '02:00:00:00:00:01'],
      ['fe80::ff:fe00:2', '02:00:00:00:00:02'],
      ['fe80::ff:fe00:3', '02:00:00:00:00:03'],
    ]);
    expect(tables.counters).toHaveLength(2 * L2_REASONS.length);
  });

  test('have what endpoints of other nodes may send', () => {
    const { fdb } = planL2Tables(planOf(endpoint(1, 'n1'), endpoint(2, 'n2', { isTrusted: true })), place(['l2-e1']));
    expect(fdb.map(([{ mac }, { trusted }]) => [mac, trusted])).toEqual([
      ['02:00:00:00:00:01', undefined],
      ['02:00:00:00:00:02', true],
    ]);
  });

  test('have nothing of a port that is not there', () => {
    const { ports, addresses, buckets, counters, flood, fdb } = planL2Tables(plan, place([]));
    expect([ports, addresses, buckets, counters]).toEqual([[], [], [], []]);
    expect(flood).toEqual([[7, { ports: [], locators: ['fd53:0:0:2::'] }]]);
    expect(fdb.map(([{ mac }]) => mac)).toEqual(['02:00:00:00:00:03']);
  });

  test('hold as many ports and nodes of a network as a record has room for; the others are a problem', () => {
    const endpoints = Array.from({ length: 33 }, (_, at) => endpoint(at + 1, 'n1'));
    const { flood, limits } = planL2Tables(
      planOf(...endpoints),
      place(endpoints.map(({ metadata }) => `l2-${metadata.name}`)),
    );
    expect(flood[0]![1].ports).toHaveLength(32);
    expect(limits).toMatchObject([{ reason: 'NetworkTooLarge', message: expect.stringContaining('33 ports') }]);
  });

  test('have all of this node, whatever others write beyond the room of a map', () => {
    const { maxEntries } = L2_MAPS.unbounded_l2_neighbors;
    const prefix = 'fd00:1::';
    const written = Array.from({ length: maxEntries }, (_, at) => ({
      ...{ network: 7, mac: '02:00:00:00:00:03', ip: parseAddress(`${prefix}${at.toString(16)}`) },
    }));
    const stations = Array.from({ length: maxEntries }, (_, at) => ({
      ...{ network: 7, mac: `02:01:00:00:${macText(Uint8Array.of(at >> 8, at & 0xff))}`, segment: 0, isTrusted: false },
      ...{ to: { locator: parsePrefix('fd53:0:0:2::/64') } },
    }));
    const crowded = { ...plan, neighbors: [...written, ...plan.neighbors], fdb: [...stations, ...plan.fdb] };
    const { neighbors, fdb, limits } = planL2Tables(crowded, place(['l2-e1', 'l2-e2']));
    expect([neighbors.length, fdb.length]).toEqual([maxEntries, maxEntries]);
    expect(limits.map(({ reason }) => reason)).toEqual(['MapFull', 'MapFull']);
    const known = neighbors.filter(([, { mac }]) => mac === '02:00:00:00:00:01').map(([{ address }]) => address);
    expect(known).toEqual(['192.0.2.1', '2001:db8::1', 'fe80::ff:fe00:1']);
    expect(fdb.slice(0, 2)).toMatchObject([
      [{}, { ifindex: 10 }],
      [{}, { ifindex: 11 }],
    ]);
  });

  test('of as many ports as there can be fit into the map of counters', () => {
    const { maxEntries } = L2_MAPS.unbounded_l2_counters;
    expect(L2_MAPS.unbounded_l2_ports.maxEntries * L2_REASONS.length).toBeLessThanOrEqual(maxEntries);
  });

  test('have room for all endpoints of a node that count', () => {
    expect(MOST_ENDPOINTS_OF_NODE).toBe(L2_MAPS.unbounded_l2_ports.maxEntries);
  });
});
