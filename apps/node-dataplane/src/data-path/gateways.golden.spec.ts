import { describe, expect, test } from 'vitest';
import { renderedIn, renderedTable } from './rendered-table.testdata.ts';
import { cluster, gateway, join, pool, site } from '@unbounded/topology/testdata';
import type { TopologyObjects } from '@unbounded/topology';

/** Whole plans: gateways, pools and what lies behind them. */

const assign = (name: string, sites: string[], gatewayPools: string[], spec: object = {}) =>
  join('assignments', name, { sites, gatewayPools, ...spec });

describe('two sites with two gateways each', () => {
  const objects = cluster({ sites: 2, gateways: 2, workers: 2, protocol: 'VXLAN' });

  test('a worker', () =>
    expect(renderedTable(renderedIn(objects, 's1-w1'))).toMatchInlineSnapshot(`
      "worker s1-w1 mtu 1420
      device vxlan0 1442 to all
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.21.0/24: s1-g1 vxlan0 10.1.0.21
      entry 100.65.22.0/24: s1-g2 vxlan0 10.1.0.22
      entry 100.65.32.0/24: s1-w2 vxlan0 10.1.0.32
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.65.21.0/32: s1-g1 vxlan0 10.1.0.21 and back
      entry 100.65.22.0/32: s1-g2 vxlan0 10.1.0.22 and back
      group site s2 IPv4: 0 s1-g1 vxlan0 10.1.0.21
      group site s2 IPv4: 0 s1-g2 vxlan0 10.1.0.22
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      probe s1-g1: 100.65.31.1 > 100.65.21.1
      probe s1-g2: 100.65.31.1 > 100.65.22.1
      probe s1-w2: 100.65.31.1 > 100.65.32.1
      echo s1-g1: 100.65.31.0 > 100.65.21.0
      echo s1-g2: 100.65.31.0 > 100.65.22.0"
    `));
  test('a gateway', () =>
    expect(renderedTable(renderedIn(objects, 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      device vxlan0 1442 to all
      wg51841 1420 s2-g1 at 203.0.113.121:51831: 10.2.0.0/24 100.65.21.0/32 100.66.0.0/16
      wg51842 1420 s2-g2 at 203.0.113.122:51831: 10.2.0.0/24 100.65.21.0/32 100.66.0.0/16
      entry 10.1.0.22/32: s1-g2 vxlan0 10.1.0.22
      entry 10.1.0.31/32: s1-w1 vxlan0 10.1.0.31
      entry 10.1.0.32/32: s1-w2 vxlan0 10.1.0.32
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.22.0/24: s1-g2 vxlan0 10.1.0.22
      entry 100.65.31.0/24: s1-w1 vxlan0 10.1.0.31
      entry 100.65.32.0/24: s1-w2 vxlan0 10.1.0.32
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      entry 100.66.22.0/24: s2-g2 wg51842
      entry 100.65.22.0/32: s1-g2 vxlan0 10.1.0.22 and back
      entry 100.66.21.0/32: s2-g1 wg51841 and back
      entry 100.66.22.0/32: s2-g2 wg51842 and back
      group site s2 IPv4: 0 s2-g1 wg51841
      group site s2 IPv4: 0 s2-g2 wg51842
      group site s2 IPv4: 1 s1-g2 vxlan0 10.1.0.22
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      probe s1-g2: 100.65.21.1 > 100.65.22.1
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s1-w2: 100.65.21.1 > 100.65.32.1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      probe s2-g2: 100.65.21.1 > 100.66.22.1
      echo s1-g2: 100.65.21.0 > 100.65.22.0
      echo s2-g1: 100.65.21.0 > 100.66.21.0
      echo s2-g2: 100.65.21.0 > 100.66.22.0
      serves s1
      forwarder 10.1.0.22"
    `));
  test('a worker, with the kernel’s own routes', () =>
    expect(renderedTable(renderedIn(objects, 's1-w1', { dataplane: 'netlink' }))).toMatchInlineSnapshot(`
      "worker s1-w1 mtu 1420
      device vxlan0 1442 to all
      group site s2 IPv4: 0 s1-g1 vxlan0 10.1.0.21 via 100.65.21.1
      group site s2 IPv4: 0 s1-g2 vxlan0 10.1.0.22 via 100.65.22.1
      route 10.2.0.0/24: group site s2 IPv4 mtu 1420
      route 100.65.0.0/16: unreachable mtu 1420
      route 100.65.21.0/24: vxlan0 10.1.0.21 via 100.65.21.1 mtu 1420
      route 100.65.22.0/24: vxlan0 10.1.0.22 via 100.65.22.1 mtu 1420
      route 100.65.31.0/24: main mtu 1420
      route 100.65.32.0/24: vxlan0 10.1.0.32 via 100.65.32.1 mtu 1420
      route 100.66.0.0/16: group site s2 IPv4 mtu 1420
      probe s1-g1: 100.65.31.1 > 100.65.21.1
      probe s1-g2: 100.65.31.1 > 100.65.22.1
      probe s1-w2: 100.65.31.1 > 100.65.32.1
      echo s1-g1: 100.65.31.0 > 100.65.21.0
      echo s1-g2: 100.65.31.0 > 100.65.22.0"
    `));
  test('a gateway whose pool’s other gateway is linked by WireGuard', () => {
    const encrypted = cluster({ sites: 2, gateways: 2, workers: 1, protocol: 'WireGuard' });
    expect(renderedTable(renderedIn(encrypted, 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      wg51820 1420 s1-w1 at 10.1.0.31:51831: 10.1.0.31/32 100.65.31.0/24
      wg51832 1420 s1-g2 at 10.1.0.22:51831: 10.1.0.0/24 10.2.0.0/24 100.65.0.0/16 100.66.0.0/16
      wg51841 1420 s2-g1 at 203.0.113.121:51831: 10.2.0.0/24 100.65.21.0/32 100.66.0.0/16
      wg51842 1420 s2-g2 at 203.0.113.122:51831: 10.2.0.0/24 100.65.21.0/32 100.66.0.0/16
      entry 10.1.0.22/32: s1-g2 wg51832
      entry 10.1.0.31/32: s1-w1 wg51820
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.22.0/24: s1-g2 wg51832
      entry 100.65.31.0/24: s1-w1 wg51820
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      entry 100.66.22.0/24: s2-g2 wg51842
      entry 100.65.22.0/32: s1-g2 wg51832 and back
      entry 100.66.21.0/32: s2-g1 wg51841 and back
      entry 100.66.22.0/32: s2-g2 wg51842 and back
      group site s2 IPv4: 0 s2-g1 wg51841
      group site s2 IPv4: 0 s2-g2 wg51842
      group site s2 IPv4: 1 s1-g2 wg51832
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      probe s1-g2: 100.65.21.1 > 100.65.22.1
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      probe s2-g2: 100.65.21.1 > 100.66.22.1
      echo s1-g2: 100.65.21.0 > 100.65.22.0
      echo s2-g1: 100.65.21.0 > 100.66.21.0
      echo s2-g2: 100.65.21.0 > 100.66.22.0
      serves s1"
    `);
  });
});

describe('a chain of three pools', () => {
  const chain: TopologyObjects = {
    ...cluster({ sites: 3, gateways: 1, workers: 1, protocol: 'VXLAN' }),
    poolPeerings: [
      join('poolPeerings', 'a', { gatewayPools: ['p1', 'p2'] }),
      join('poolPeerings', 'b', { gatewayPools: ['p2', 'p3'] }),
    ],
  };

  test('its end', () =>
    expect(renderedTable(renderedIn(chain, 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      device vxlan0 1442 to all
      wg51841 1420 s2-g1 at 203.0.113.121:51831: 10.2.0.0/24 10.3.0.0/24 100.65.21.0/32 100.66.0.0/16 100.67.0.0/16
      entry 10.1.0.31/32: s1-w1 vxlan0 10.1.0.31
      entry 10.2.0.0/24: group site s2 IPv4
      entry 10.3.0.0/24: group site s3 IPv4
      entry 100.65.31.0/24: s1-w1 vxlan0 10.1.0.31
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      entry 100.67.0.0/16: group site s3 IPv4
      entry 100.66.21.0/32: s2-g1 wg51841 and back
      group site s2 IPv4: 0 s2-g1 wg51841
      group site s3 IPv4: 0 s2-g1 wg51841
      route 10.2.0.0/24: anchor mtu 1420
      route 10.3.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      route 100.67.0.0/16: anchor mtu 1420
      transit 10.1.0.31/32: anchor mtu 1420
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      echo s2-g1: 100.65.21.0 > 100.66.21.0
      serves s1"
    `));
  test('its middle carries what passes', () =>
    expect(renderedTable(renderedIn(chain, 's2-g1'))).toMatchInlineSnapshot(`
      "gateway s2-g1 mtu 1420
      device vxlan0 1442 to all
      wg51831 1420 s1-g1 at 203.0.113.111:51841: 10.1.0.0/24 100.65.0.0/16 100.66.21.0/32
      wg51851 1420 s3-g1 at 203.0.113.131:51841: 10.3.0.0/24 100.66.21.0/32 100.67.0.0/16
      entry 10.1.0.0/24: group site s1 IPv4
      entry 10.2.0.31/32: s2-w1 vxlan0 10.2.0.31
      entry 10.3.0.0/24: group site s3 IPv4
      entry 100.65.0.0/16: group site s1 IPv4
      entry 100.65.21.0/24: s1-g1 wg51831
      entry 100.66.31.0/24: s2-w1 vxlan0 10.2.0.31
      entry 100.67.0.0/16: group site s3 IPv4
      entry 100.67.21.0/24: s3-g1 wg51851
      entry 100.65.21.0/32: s1-g1 wg51831 and back
      entry 100.67.21.0/32: s3-g1 wg51851 and back
      group site s1 IPv4: 0 s1-g1 wg51831
      group site s3 IPv4: 0 s3-g1 wg51851
      route 10.1.0.0/24: anchor mtu 1420
      route 10.3.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      route 100.67.0.0/16: anchor mtu 1420
      transit 10.2.0.31/32: anchor mtu 1420
      probe s1-g1: 100.66.21.1 > 100.65.21.1
      probe s2-w1: 100.66.21.1 > 100.66.31.1
      probe s3-g1: 100.66.21.1 > 100.67.21.1
      echo s1-g1: 100.66.21.0 > 100.65.21.0
      echo s3-g1: 100.66.21.0 > 100.67.21.0
      serves s2"
    `));
  test('cut by a disabled peering', () => {
    const [a, b] = chain.poolPeerings;
    const cut = { ...chain, poolPeerings: [a!, { ...b!, spec: { ...b!.spec, enabled: false } }] };
    expect(renderedIn(cut, 's1-g1').groups.map(({ name }) => name)).toEqual(['site s2 IPv4']);
  });
});

describe('an Internal pool', () => {
  const { externalIPs: _, ...inner } = gateway(1, 1);
  const objects = {
    ...cluster({ sites: 2, gateways: 1, workers: 1 }),
    gatewayPools: [pool('p1', [inner], { type: 'Internal' }), pool('p2', [gateway(2, 1)])],
  };

  test('calls the gateways of others', () =>
    expect(renderedTable(renderedIn(objects, 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      device geneve0 1442 to all
      wg51841 1420 s2-g1 at 203.0.113.121:51831 every 25 s: 10.2.0.0/24 100.65.21.0/32 100.66.0.0/16
      entry 10.1.0.31/32: s1-w1 geneve0 10.1.0.31
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.31.0/24: s1-w1 geneve0 10.1.0.31
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      entry 100.66.21.0/32: s2-g1 wg51841 and back
      group site s2 IPv4: 0 s2-g1 wg51841
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      transit 10.1.0.31/32: anchor mtu 1420
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      echo s2-g1: 100.65.21.0 > 100.66.21.0
      serves s1"
    `));
  test('is found by them', () =>
    expect(renderedTable(renderedIn(objects, 's2-g1'))).toMatchInlineSnapshot(`
      "gateway s2-g1 mtu 1420
      device geneve0 1442 to all
      wg51831 1420 s1-g1 at ?: 10.1.0.0/24 100.65.0.0/16 100.66.21.0/32
      entry 10.1.0.0/24: group site s1 IPv4
      entry 10.2.0.31/32: s2-w1 geneve0 10.2.0.31
      entry 100.65.0.0/16: group site s1 IPv4
      entry 100.65.21.0/24: s1-g1 wg51831
      entry 100.66.31.0/24: s2-w1 geneve0 10.2.0.31
      entry 100.65.21.0/32: s1-g1 wg51831 and back
      group site s1 IPv4: 0 s1-g1 wg51831
      route 10.1.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      transit 10.2.0.31/32: anchor mtu 1420
      probe s1-g1: 100.66.21.1 > 100.65.21.1
      probe s2-w1: 100.66.21.1 > 100.66.31.1
      echo s1-g1: 100.66.21.0 > 100.65.21.0
      serves s2"
    `));

  test('cannot serve a site on another network, and says so', () => {
    const far = { ...objects, assignments: [assign('a', ['s1', 's2'], ['p1'])] };
    const plan = renderedIn(far, 's2-w1');
    expect(plan.groups).toEqual([]);
    expect(plan.problems.map(({ reason }) => reason)).toEqual(['NoEndpoint']);
    expect(renderedIn(far, 's1-g1').servedSites).toEqual(['s1']);
  });
});

describe('routed blocks', () => {
  const base = cluster({ sites: 2, gateways: 1, workers: 1, protocol: 'VXLAN' });
  const objects = {
    ...base,
    gatewayPools: [
      pool('p1', [gateway(1, 1)], { routedCidrs: ['192.168.0.0/16'] }),
      pool('p2', [gateway(2, 1)], { routedCidrs: ['192.168.7.0/24'] }),
    ],
  };

  test('a worker', () =>
    expect(renderedTable(renderedIn(objects, 's2-w1'))).toMatchInlineSnapshot(`
      "worker s2-w1 mtu 1420
      device vxlan0 1442 to all
      entry 10.1.0.0/24: group site s1 IPv4
      entry 100.65.0.0/16: group site s1 IPv4
      entry 100.66.21.0/24: s2-g1 vxlan0 10.2.0.21
      entry 192.168.0.0/16: group routed by p1 IPv4
      entry 192.168.7.0/24: group routed by p2 IPv4
      entry 100.66.21.0/32: s2-g1 vxlan0 10.2.0.21 and back
      group routed by p1 IPv4: 0 s2-g1 vxlan0 10.2.0.21
      group routed by p2 IPv4: 0 s2-g1 vxlan0 10.2.0.21
      group site s1 IPv4: 0 s2-g1 vxlan0 10.2.0.21
      route 10.1.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      route 192.168.0.0/16: anchor mtu 1420
      probe s2-g1: 100.66.31.1 > 100.66.21.1
      echo s2-g1: 100.66.31.0 > 100.66.21.0"
    `));
  test('a gateway leaves its own pool’s to its own routes', () =>
    expect(renderedTable(renderedIn(objects, 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      device vxlan0 1442 to all
      wg51841 1420 s2-g1 at 203.0.113.121:51831: 10.2.0.0/24 100.65.21.0/32 100.66.0.0/16 192.168.7.0/24
      entry 10.1.0.31/32: s1-w1 vxlan0 10.1.0.31
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.31.0/24: s1-w1 vxlan0 10.1.0.31
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      entry 100.66.21.0/32: s2-g1 wg51841 and back
      group site s2 IPv4: 0 s2-g1 wg51841
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      transit 10.1.0.31/32: anchor mtu 1420
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      echo s2-g1: 100.65.21.0 > 100.66.21.0
      serves s1"
    `));
  test('a wider block of another pool does not take its own pool’s with it, nor the nodes that are near', () => {
    const wide = {
      ...objects,
      gatewayPools: [
        pool('p1', [gateway(1, 1)], { routedCidrs: ['192.168.0.0/16', '10.0.0.0/14'] }),
        objects.gatewayPools[1]!,
      ],
    };
    const prefixes = renderedIn(wide, 's2-g1').endpoints.flatMap(({ prefix, via }) =>
      'group' in via && via.group.startsWith('routed') ? [prefix] : [],
    );
    expect(prefixes.filter((text) => text.startsWith('10.'))).toMatchInlineSnapshot(`
      [
        "10.0.0.0/15",
        "10.2.1.0/24",
        "10.2.2.0/23",
        "10.2.4.0/22",
        "10.2.8.0/21",
        "10.2.16.0/20",
        "10.2.32.0/19",
        "10.2.64.0/18",
        "10.2.128.0/17",
        "10.3.0.0/16",
      ]
    `);
    expect(prefixes.filter((text) => text.startsWith('192.'))).toMatchInlineSnapshot(`
      [
        "192.168.0.0/22",
        "192.168.4.0/23",
        "192.168.6.0/24",
        "192.168.8.0/21",
        "192.168.16.0/20",
        "192.168.32.0/19",
        "192.168.64.0/18",
        "192.168.128.0/17",
      ]
    `);
  });
  test('what is cut out of two blocks leaves both their own parts', () => {
    const nested = {
      ...objects,
      gatewayPools: [
        pool('p1', [gateway(1, 1)], { routedCidrs: ['10.0.0.0/14'] }),
        pool('p2', [gateway(2, 1)], { routedCidrs: ['10.0.0.0/15'] }),
      ],
    };
    const { endpoints } = renderedIn({ ...nested, sites: [site(1), site(2)] }, 's1-w1');
    const groupOf = (text: string): string[] =>
      endpoints.flatMap(({ prefix, via }) => (prefix === text && 'group' in via ? [via.group] : []));
    expect(groupOf('10.0.0.0/16')).toEqual(['routed by p2 IPv4']);
    expect(groupOf('10.2.0.0/15')).toEqual(['routed by p1 IPv4']);
  });
  test('a block that holds a gateway’s address would swallow the tunnels, and is refused', () => {
    const all = {
      ...base,
      gatewayPools: [base.gatewayPools[0]!, pool('p2', [gateway(2, 1)], { routedCidrs: ['203.0.113.0/24'] })],
    };
    const plan = renderedIn(all, 's1-g1');
    expect(plan.endpoints.map(({ prefix }) => prefix)).not.toContain('203.0.113.0/24');
    expect(plan.problems).toEqual([
      {
        reason: 'RouteOverlapsUnderlay',
        message:
          'GatewayPool p2 routedCidrs: 203.0.113.0/24 holds 203.0.113.111, an address of this node, and is not routed into the overlay: list smaller blocks without such addresses',
      },
    ]);
  });
});

test('a site served by a near and a far pool uses the far one only for want of the near', () => {
  const objects = {
    ...cluster({ sites: 3, gateways: 1, workers: 1 }),
    assignments: [assign('a1', ['s1'], ['p1', 'p2']), assign('a2', ['s2'], ['p2']), assign('a3', ['s3'], ['p3'])],
    poolPeerings: [
      join('poolPeerings', 'a', { gatewayPools: ['p1', 'p2'] }),
      join('poolPeerings', 'b', { gatewayPools: ['p2', 'p3'] }),
    ],
  };
  expect(
    renderedIn(objects, 's1-w1').groups.map(({ name, members }) => [name, members.map((m) => `${m.tier} ${m.node}`)]),
  ).toMatchInlineSnapshot(`
      [
        [
          "site s2 IPv4",
          [
            "0 s2-g1",
            "1 s1-g1",
          ],
        ],
        [
          "site s3 IPv4",
          [
            "0 s2-g1",
            "1 s1-g1",
          ],
        ],
      ]
    `);
});
