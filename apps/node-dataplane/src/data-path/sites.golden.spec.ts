import { describe, expect, test } from 'vitest';
import { renderedIn, renderedTable } from './rendered-table.testdata.ts';
import { cluster, gateway, inFamilies, join, pool, site, slice, worker } from '@unbounded/topology/testdata';
import type { TopologyObjects } from '@unbounded/topology';

/** Whole plans: sites on one network, families of addresses, other CNI plugins. */

const NOTHING: TopologyObjects = {
  sites: [],
  slices: [],
  gatewayPools: [],
  sitePeerings: [],
  assignments: [],
  poolPeerings: [],
  meshes: [],
};
const assign = (name: string, sites: string[], gatewayPools: string[], spec: object = {}) =>
  join('assignments', name, { sites, gatewayPools, ...spec });

describe('sites on one routed network', () => {
  const sites = { sites: [site(1), site(2)], slices: [slice(1, [worker(1, 1)]), slice(2, [worker(2, 1)])] };
  const peering = (spec: object) => join('sitePeerings', 'lan', { sites: ['s1', 's2'], ...spec });

  test('nodes link directly, by internal addresses', () => {
    const objects = { ...NOTHING, ...sites, sitePeerings: [peering({ tunnelMTU: 1300 })] };
    expect(renderedTable(renderedIn(objects, 's1-w1'))).toMatchInlineSnapshot(`
      "worker s1-w1 mtu 1300
      device geneve0 1300 to all
      entry 100.66.31.0/24: s2-w1 geneve0 10.2.0.31
      route 100.65.0.0/16: anchor mtu 1300
      route 100.66.0.0/16: anchor mtu 1300
      probe s2-w1: 100.65.31.1 > 100.66.31.1"
    `);
  });

  test('without a mesh a gateway between them uses internal addresses, and nodes reach each other without it', () => {
    const objects = {
      ...NOTHING,
      ...sites,
      gatewayPools: [pool('p1', [gateway(1, 1)])],
      assignments: [assign('a', ['s1', 's2'], ['p1'])],
      sitePeerings: [peering({ meshNodes: false })],
    };
    expect(renderedTable(renderedIn(objects, 's2-w1'))).toMatchInlineSnapshot(`
      "worker s2-w1 mtu 1420
      device geneve0 1442 to all
      entry 100.65.0.0/16: group site s1 IPv4
      entry 100.65.21.0/24: s1-g1 geneve0 10.1.0.21
      entry 100.65.21.0/32: s1-g1 geneve0 10.1.0.21 and back
      group site s1 IPv4: 0 s1-g1 geneve0 10.1.0.21
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      probe s1-g1: 100.66.31.1 > 100.65.21.1
      echo s1-g1: 100.66.31.0 > 100.65.21.0"
    `);
  });
});

describe('families', () => {
  const objects = cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'GENEVE' });

  test('dual-stack pods over a dual-stack underlay go over IPv4', () =>
    expect(renderedTable(renderedIn(inFamilies(objects, '46', '46'), 's1-w1'))).toMatchInlineSnapshot(`
      "worker s1-w1 mtu 1420
      device geneve0 1442 to all
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.21.0/24: s1-g1 geneve0 10.1.0.21
      entry 100.65.32.0/24: s1-w2 geneve0 10.1.0.32
      entry 100.66.0.0/16: group site s2 IPv4
      entry fd00:2::/64: group site s2 IPv6
      entry fd64:65:21::/64: s1-g1 geneve0 10.1.0.21
      entry fd64:65:32::/64: s1-w2 geneve0 10.1.0.32
      entry fd64:66::/32: group site s2 IPv6
      entry 100.65.21.0/32: s1-g1 geneve0 10.1.0.21 and back
      entry fd64:65:21:0:ffff:ffff:ffff:ffff/128: s1-g1 geneve0 10.1.0.21 and back
      group site s2 IPv4: 0 s1-g1 geneve0 10.1.0.21
      group site s2 IPv6: 0 s1-g1 geneve0 10.1.0.21
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      route fd00:2::/64: anchor mtu 1420
      route fd64:65::/32: anchor mtu 1420
      route fd64:66::/32: anchor mtu 1420
      probe s1-g1: 100.65.31.1 > 100.65.21.1
      probe s1-g1: fd64:65:31::1 > fd64:65:21::1
      probe s1-w2: 100.65.31.1 > 100.65.32.1
      probe s1-w2: fd64:65:31::1 > fd64:65:32::1
      echo s1-g1: 100.65.31.0 > 100.65.21.0
      echo s1-g1: fd64:65:31:0:ffff:ffff:ffff:ffff > fd64:65:21:0:ffff:ffff:ffff:ffff"
    `));
  test('IPv6 alone', () =>
    expect(renderedTable(renderedIn(inFamilies(objects, '6', '6'), 's1-w1'))).toMatchInlineSnapshot(`
      "worker s1-w1 mtu 1420
      device geneve0 1422 to all
      entry fd00:2::/64: group site s2 IPv6
      entry fd64:65:21::/64: s1-g1 geneve0 fd00:1::21
      entry fd64:65:32::/64: s1-w2 geneve0 fd00:1::32
      entry fd64:66::/32: group site s2 IPv6
      entry fd64:65:21:0:ffff:ffff:ffff:ffff/128: s1-g1 geneve0 fd00:1::21 and back
      group site s2 IPv6: 0 s1-g1 geneve0 fd00:1::21
      route fd00:2::/64: anchor mtu 1420
      route fd64:65::/32: anchor mtu 1420
      route fd64:66::/32: anchor mtu 1420
      probe s1-g1: fd64:65:31::1 > fd64:65:21::1
      probe s1-w2: fd64:65:31::1 > fd64:65:32::1
      echo s1-g1: fd64:65:31:0:ffff:ffff:ffff:ffff > fd64:65:21:0:ffff:ffff:ffff:ffff"
    `));
  test('IPv4 pods over an IPv6 underlay, with the kernel’s own routes', () =>
    expect(renderedTable(renderedIn(inFamilies(objects, '4', '6'), 's1-w1', { dataplane: 'netlink' })))
      .toMatchInlineSnapshot(`
        "worker s1-w1 mtu 1420
        device gn6f384cae3208d 1422 fd00:1::21
        device gn6f3884de32090 1422 fd00:1::32
        group site s2 IPv4: 0 s1-g1 gn6f384cae3208d fd00:1::21 via 100.65.21.1
        route 100.65.0.0/16: unreachable mtu 1420
        route 100.65.21.0/24: gn6f384cae3208d fd00:1::21 via 100.65.21.1 mtu 1420
        route 100.65.31.0/24: main mtu 1420
        route 100.65.32.0/24: gn6f3884de32090 fd00:1::32 via 100.65.32.1 mtu 1420
        route 100.66.0.0/16: group site s2 IPv4 mtu 1420
        probe s1-g1: 100.65.31.1 > 100.65.21.1
        probe s1-w2: 100.65.31.1 > 100.65.32.1
        echo s1-g1: 100.65.31.0 > 100.65.21.0"
      `));
  test('a gateway of each, over IPv6', () =>
    expect(renderedTable(renderedIn(inFamilies(objects, '46', '6'), 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      device geneve0 1422 to all
      wg51841 1420 s2-g1 at [2001:db8::121]:51831: 100.65.21.0/32 100.66.0.0/16 fd00:2::/64 fd64:65:21:0:ffff:ffff:ffff:ffff/128 fd64:66::/32
      entry 100.65.31.0/24: group node s1-w1 IPv4
      entry 100.65.32.0/24: group node s1-w2 IPv4
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      entry fd00:1::31/128: s1-w1 geneve0 fd00:1::31
      entry fd00:1::32/128: s1-w2 geneve0 fd00:1::32
      entry fd00:2::/64: group site s2 IPv6
      entry fd64:65:31::/64: s1-w1 geneve0 fd00:1::31
      entry fd64:65:32::/64: s1-w2 geneve0 fd00:1::32
      entry fd64:66::/32: group site s2 IPv6
      entry fd64:66:21::/64: s2-g1 wg51841
      entry 100.66.21.0/32: s2-g1 wg51841 and back
      entry fd64:66:21:0:ffff:ffff:ffff:ffff/128: s2-g1 wg51841 and back
      group node s1-w1 IPv4: 0 s1-w1 geneve0 fd00:1::31
      group node s1-w2 IPv4: 0 s1-w2 geneve0 fd00:1::32
      group site s2 IPv4: 0 s2-g1 wg51841
      group site s2 IPv6: 0 s2-g1 wg51841
      route 100.65.0.0/16: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      route fd00:2::/64: anchor mtu 1420
      route fd64:65::/32: anchor mtu 1420
      route fd64:66::/32: anchor mtu 1420
      transit fd00:1::31/128: anchor mtu 1420
      transit fd00:1::32/128: anchor mtu 1420
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s1-w1: fd64:65:21::1 > fd64:65:31::1
      probe s1-w2: 100.65.21.1 > 100.65.32.1
      probe s1-w2: fd64:65:21::1 > fd64:65:32::1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      probe s2-g1: fd64:65:21::1 > fd64:66:21::1
      echo s2-g1: 100.65.21.0 > 100.66.21.0
      echo s2-g1: fd64:65:21:0:ffff:ffff:ffff:ffff > fd64:66:21:0:ffff:ffff:ffff:ffff
      serves s1"
    `));
});

describe('a site with another CNI plugin', () => {
  const objects = cluster({ sites: 2, gateways: 1, workers: 2, protocol: 'VXLAN' });
  const [first, second] = objects.sites;
  const foreign = { ...objects, sites: [{ ...first!, spec: { ...first!.spec, manageCniPlugin: false } }, second!] };

  test('its workers link with gateways only', () =>
    expect(renderedTable(renderedIn(foreign, 's1-w1'))).toMatchInlineSnapshot(`
      "worker s1-w1 mtu 1420
      device vxlan0 1442 to all
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.21.0/24: s1-g1 vxlan0 10.1.0.21
      entry 100.65.21.1/32: s1-g1 vxlan0 10.1.0.21
      entry 100.66.0.0/16: group site s2 IPv4
      group site s2 IPv4: 0 s1-g1 vxlan0 10.1.0.21
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.21.1/32: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      probe s1-g1: 100.65.31.1 > 100.65.21.1"
    `));
  test('its gateways know whose pods they are, and leave the way to them to the plugin', () =>
    expect(renderedTable(renderedIn(foreign, 's1-g1'))).toMatchInlineSnapshot(`
      "gateway s1-g1 mtu 1420
      device vxlan0 1442 to all
      wg51841 1420 s2-g1 at 203.0.113.121:51831: 10.2.0.0/24 100.66.0.0/16
      entry 10.1.0.31/32: s1-w1 vxlan0 10.1.0.31
      entry 10.1.0.32/32: s1-w2 vxlan0 10.1.0.32
      entry 10.2.0.0/24: group site s2 IPv4
      entry 100.65.31.0/24: s1-w1 vxlan0 10.1.0.31
      entry 100.65.31.1/32: s1-w1 vxlan0 10.1.0.31
      entry 100.65.32.0/24: s1-w2 vxlan0 10.1.0.32
      entry 100.65.32.1/32: s1-w2 vxlan0 10.1.0.32
      entry 100.66.0.0/16: group site s2 IPv4
      entry 100.66.21.0/24: s2-g1 wg51841
      group site s2 IPv4: 0 s2-g1 wg51841
      route 10.2.0.0/24: anchor mtu 1420
      route 100.65.31.1/32: anchor mtu 1420
      route 100.65.32.1/32: anchor mtu 1420
      route 100.66.0.0/16: anchor mtu 1420
      transit 10.1.0.31/32: anchor mtu 1420
      transit 10.1.0.32/32: anchor mtu 1420
      probe s1-w1: 100.65.21.1 > 100.65.31.1
      probe s1-w2: 100.65.21.1 > 100.65.32.1
      probe s2-g1: 100.65.21.1 > 100.66.21.1
      serves s1"
    `));
});
