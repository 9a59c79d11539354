import { describe, expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { planDevices } from './devices.plan.ts';

describe('the devices of a plan', () => {
  test('a bridge for pods, a device for each protocol in use, the anchor, and one for echoes', () => {
    const specs = planDevices(planFor('w1', 'VXLAN'));
    expect(specs.map(({ name, purpose }) => [name, purpose])).toEqual([
      ['cbr0', 'bridge'],
      ['vxlan0', 'vxlan'],
      ['unbounded0', 'anchor'],
      ['unbounded-echo', 'echo'],
    ]);
  });

  test('the bridge has the first address with the length of the block, overlay devices have it alone and do no ARP', () => {
    const [bridge, tunnel, anchor] = planDevices(planFor('w1', 'GENEVE'));
    expect(bridge).toMatchObject({ addresses: ['100.65.30.1/24'], arp: true, mac: '02:64:41:1e:01:ff' });
    expect(tunnel).toMatchObject({ addresses: ['100.65.30.1/32'], arp: false, mac: '02:0a:01:00:1e:ff' });
    expect(anchor).toMatchObject({ addresses: ['100.65.30.1/32'], arp: false, mtuBytes: 1420 });
  });

  test('the bridge has the first address of each block, whichever family comes first', () => {
    const addresses = ['100.65.30.1/32', 'fd64:65:30::1/128'];
    for (const podCidrs of [
      ['fd64:65:30::/64', '100.65.30.0/24'],
      ['100.65.30.0/24', 'fd64:65:30::/64'],
    ]) {
      const [bridge] = planDevices({ ...planFor('w1'), podCidrs, overlayAddresses: addresses });
      expect(bridge!.addresses.toSorted()).toEqual(['100.65.30.1/24', 'fd64:65:30::1/64']);
    }
  });

  test.each([
    ['10.1.0.30', '02:0a:01:00:1e:ff'],
    ['fd00::a:2', '02:39:b0:73:d3:ff'],
  ])('the MAC of a tunnel device follows from the underlay address %s: %s', (underlayIp, mac) => {
    const tunnel = planDevices({ ...planFor('w1'), underlayIp }).find(({ name }) => name === 'vxlan0');
    expect(tunnel).toMatchObject({ mac });
  });

  test('an IPIP device has no MAC', () => {
    const tunnel = planDevices(planFor('w1', 'IPIP')).find(({ name }) => name === 'ipip0');
    expect(tunnel).toBeDefined();
    expect(tunnel).not.toHaveProperty('mac');
  });

  test('a gateway has an interface for its workers and one for each gateway elsewhere', () => {
    const names = planDevices(planFor('g1', 'WireGuard')).map(({ name }) => name);
    expect(names).toEqual(['cbr0', 'wg51820', 'wg51822', 'unbounded0', 'unbounded-echo']);
  });

  test('where others manage CNI there is no bridge of ours', () => {
    expect(planDevices({ ...planFor('w1'), manageCni: false }).some(({ purpose }) => purpose === 'bridge')).toBe(false);
  });

  test('a device of one IPIP peer sends from the node’s own address, but not over external addresses', () => {
    const plan = { ...planFor('w1', 'IPIP', 'netlink'), ownAddresses: ['10.1.0.30'] };
    const locals = (some: typeof plan) =>
      planDevices(some).flatMap(({ remoteIp, localIp }) => (remoteIp ? [localIp] : []));
    expect(new Set(locals(plan))).toEqual(new Set(['10.1.0.30']));
    const externalTunnelPeers = plan.tunnels.flatMap(({ remoteIp }) => remoteIp ?? []);
    expect(new Set(locals({ ...plan, externalTunnelPeers }))).toEqual(new Set([undefined]));
  });
});
