import type { Link, LinkAddress, Route } from '@unbounded/netlink';
import { describe, expect, test } from 'vitest';
import { describeNetwork } from './own-network.ts';

const link = (index: number, name: string, rest: object = {}): Link =>
  ({ index, name, hardwareType: 1, alias: '', group: 0, ...rest }) as unknown as Link;
const LINKS = [
  link(1, 'lo', { hardwareType: 772 }),
  link(2, 'eth0', { master: 7 }),
  link(3, 'eth1'),
  link(4, 'eth2'),
  link(5, 'bgp0', { kind: { kind: 'dummy' } }),
  link(6, 'unbounded0', { kind: { kind: 'dummy' }, alias: 'unbounded' }),
  link(7, 'blue', { kind: { kind: 'vrf' } }),
  link(8, 'eth3'),
];
const at = (index: number, address: string): LinkAddress => ({ link: index, address });
const route = (dst: string, rest: object): Route =>
  ({ dst, type: 'unicast', table: 254, metric: 1024, protocol: 3, ...rest }) as unknown as Route;
const networkOf = (addresses: readonly LinkAddress[], own: readonly string[] = [], routes: readonly Route[] = []) =>
  describeNetwork({ links: LINKS, addresses, routes }, { ownAddresses: own });

describe('what the table must know of the node’s network', () => {
  test('addresses on loopback and dummy devices float; not those of every host, and not those of our own devices', () => {
    const addresses = [
      ...[at(1, '127.0.0.1/8'), at(1, '::1/128'), at(1, '192.0.2.1/32'), at(2, '10.1.0.30/24')],
      ...[at(5, '2001:db8::1/128'), at(5, 'fe80::1/64'), at(6, '100.65.30.1/32')],
    ];
    expect(networkOf(addresses).floating).toEqual(['192.0.2.1', '2001:db8::1']);
  });

  test('interfaces with an address in the subnet of an own one stand beside it, and its VRF', () => {
    const addresses = [at(2, '10.1.0.30/24'), at(3, '10.1.0.31/24'), at(4, '203.0.113.30/24'), at(6, '10.1.0.30/24')];
    expect(networkOf(addresses, ['10.1.0.30']).besideOwn).toEqual(['blue', 'eth0', 'eth1']);
  });

  describe('what native neighbors may send, and by which interfaces', () => {
    const PODS = '100.65.31.0/24';
    const nativeBy = (neighbors: Readonly<Record<string, string>>, routes: readonly Route[]) =>
      describeNetwork(
        { links: LINKS, addresses: [], routes },
        {
          ownAddresses: [],
          alsoPlainBy: Object.entries(neighbors).map(([prefix, gateway]) => ({ prefix, gateways: [gateway] })),
        },
      ).native;
    const onLink = [
      route('10.1.0.0/24', { link: 3 }),
      route('fd00:1:0:0:0:0:0:0/64', { link: 4 }),
      route('10.0.0.0/8', { link: 8 }),
    ];

    test('each its own block, by the longest route to it', () => {
      expect(nativeBy({ [PODS]: '10.1.0.31', 'fd64:65:31::/64': 'fd00:1::31' }, onLink)).toEqual([
        { device: 'eth1', prefixes: [PODS] },
        { device: 'eth2', prefixes: ['fd64:65:31::/64'] },
      ]);
      expect(nativeBy({ [PODS]: '10.9.0.1' }, onLink)).toEqual([{ device: 'eth3', prefixes: [PODS] }]);
      expect(nativeBy({}, onLink)).toEqual([]);
    });

    test('a block inside of another one by its own interface alone', () => {
      expect(nativeBy({ '100.65.30.0/23': '10.1.0.31', [PODS]: '10.9.0.1' }, onLink)).toEqual([
        { device: 'eth1', prefixes: ['100.65.30.0/24'] },
        { device: 'eth3', prefixes: [PODS] },
      ]);
    });

    test('by all interfaces with that route', () => {
      const several = [
        route('10.1.0.0/24', { nexthops: [{ link: 3 }, { link: 4 }, { link: 8, gateway: '10.9.0.1' }] }),
      ];
      expect(nativeBy({ [PODS]: '10.1.0.31' }, several).map(({ device }) => device)).toEqual(['eth1', 'eth2']);
    });

    test('by the main table, whatever a VRF has; by the VRF where the main one has nothing', () => {
      const vrf = route('10.1.0.0/25', { link: 2, table: 100 });
      expect(nativeBy({ [PODS]: '10.1.0.31' }, [...onLink, vrf]).map(({ device }) => device)).toEqual(['eth1']);
      expect(nativeBy({ [PODS]: '10.1.0.31' }, [vrf]).map(({ device }) => device)).toEqual(['blue', 'eth0']);
    });

    test.each([
      ['with a next hop', { link: 3, gateway: '10.9.0.1' }],
      ['of ours', { link: 3, protocol: 117 }],
      ['of local addresses', { link: 1, table: 255 }],
      ['that refuses', { link: 1, type: 'unreachable' }],
      ['to a device of ours', { link: 6 }],
    ])('by none with a route %s', (_, rest) => {
      expect(nativeBy({ [PODS]: '10.1.0.31' }, [route('10.1.0.0/24', rest)])).toEqual([]);
    });
  });

  test('alternatives are of IPv6', () => {
    const several = { nexthops: [{ link: 2 }, { link: 3 }] };
    expect(networkOf([], [], [route('10.9.0.0/16', several), route('0.0.0.0/0', several)]).alternatives).toEqual([]);
  });

  test('subnets of interfaces are on link; those of loopback and of our own devices are not', () => {
    const addresses = [at(1, '127.0.0.1/8'), at(2, '10.1.0.30/24'), at(3, 'fd00:1::30/64'), at(6, '100.65.30.1/24')];
    expect(networkOf(addresses).onLink).toEqual(['10.1.0.0/24', 'fd00:1::/64']);
  });

  test('the interfaces of a multipath route are alternatives, and those of routes that differ in the interface only', () => {
    const routes = [
      route('::/0', { nexthops: [{ link: 2 }, { link: 3 }] }),
      route('2001:db8:1::/48', { link: 4 }),
      route('2001:db8:1::/48', { link: 8 }),
    ];
    expect(networkOf([], [], routes).alternatives).toEqual([
      ['eth0', 'eth1'],
      ['eth2', 'eth3'],
    ]);
  });

  test('alternatives that have an interface in common are one set', () => {
    const routes = [
      route('2001:db8:1::/48', { nexthops: [{ link: 2 }, { link: 3 }] }),
      route('2001:db8:2::/48', { nexthops: [{ link: 4 }, { link: 3 }] }),
    ];
    expect(networkOf([], [], routes).alternatives).toEqual([['eth0', 'eth1', 'eth2']]);
  });

  test.each([
    ['metrics differ', [route('::/0', { link: 2 }), route('::/0', { link: 3, metric: 2048 })]],
    ['tables differ', [route('::/0', { link: 2 }), route('::/0', { link: 3, table: 100 })]],
    [
      'they are the link-local ones of every interface',
      [route('fe80::/64', { link: 2 }), route('fe80::/64', { link: 3 })],
    ],
    ['they are ours', [route('fd64::/16', { protocol: 117, nexthops: [{ link: 2 }, { link: 3 }] })]],
  ])('routes make no alternatives where %s', (_, routes) => {
    expect(networkOf([], [], routes).alternatives).toEqual([]);
  });
});
