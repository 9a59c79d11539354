import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { KernelPlan, TunnelDevice } from '../../data-path/kernel-plan.ts';
import { planOf } from './boundary-lab.testdata.ts';
import { FAMILIES } from './boundary-network.testdata.ts';
import { NO_NETWORK } from './own-network.ts';
import { ADDRESSES, openMultihomedLab, type Shot, type MultihomedLab } from './multihomed-lab.testdata.ts';

/** By which way tunnel packets come, packet by packet. What a row names is sent once in each family. */

type Row = readonly [what: string, shot: Shot];

const withExternalPeer = (plan: KernelPlan): KernelPlan => ({ ...plan, externalTunnelPeers: ADDRESSES.externalPeer });
const planWith = (dataplane: 'ebpf' | 'netlink', kind: TunnelDevice['kind']): KernelPlan => {
  const plan = withExternalPeer(planOf({ role: 'gateway', protocol: 'VXLAN', dataplane }));
  const isOfAll = dataplane === 'ebpf' || kind === 'VXLAN';
  return { ...plan, tunnels: isOfAll ? [{ kind, device: 'x', mtuBytes: 1400 }] : ofFarEnds(kind) };
};
/** The netlink data path has a device for each far end, of the kinds that cannot tell them apart. */
const ofFarEnds = (kind: TunnelDevice['kind']): TunnelDevice[] =>
  (['nearNode', 'twiceNear', 'externalPeer', 'farNode'] as const)
    .flatMap((name) => ADDRESSES[name])
    .map((remoteIp, index) => ({ kind, device: `x${index}`, mtuBytes: 1400, remoteIp }));

const STRAYS: readonly Row[] = [
  ['a near node’s name, by the WAN', { by: 'eth2', source: 'nearNode', to: 'internal' }],
  ['a near node’s name, by the WAN, at the address there', { by: 'eth2', source: 'nearNode', to: 'external' }],
  ['a near node’s name, by the WAN, in fragments', { by: 'eth2', source: 'nearNode', to: 'internal', bytes: 4000 }],
  ['the name of a node with two ways, by a third', { by: 'eth2', source: 'twiceNear', to: 'internal' }],
  ['a near node, at the address of the WAN', { by: 'eth0', source: 'nearNode', to: 'external' }],
  ['a near node, at another address of the node', { by: 'eth0', source: 'nearNode', to: 'another' }],
  ['a near node, at an address on loopback', { by: 'eth0', source: 'nearNode', to: 'loopback' }],
  ['a far node’s name, by the LAN', { by: 'eth0', source: 'farNode', to: 'internal' }],
  ['a far node’s name, by the WAN', { by: 'eth2', source: 'farNode', to: 'external' }],
  ['an external peer’s name, by the LAN', { by: 'eth0', source: 'externalPeer', to: 'internal' }],
  ['an external peer’s name, by the LAN, at the WAN’s address', { by: 'eth0', source: 'externalPeer', to: 'external' }],
  ['an external peer, at an address that the WAN has not', { by: 'eth2', source: 'externalPeer', to: 'another' }],
  ['who is no peer, at the address of the WAN', { by: 'eth2', source: 'internet', to: 'external' }],
];

const TAKEN: readonly Row[] = [
  ['a near node', { by: 'eth0', source: 'nearNode', to: 'internal' }],
  ['a near node, in fragments', { by: 'eth0', source: 'nearNode', to: 'internal', bytes: 4000 }],
  ['a node with two ways, by the first', { by: 'eth0', source: 'twiceNear', to: 'internal' }],
  ['a node with two ways, by the second', { by: 'eth1', source: 'twiceNear', to: 'internal' }],
  ['an external peer', { by: 'eth2', source: 'externalPeer', to: 'external' }],
  ['an external peer, to whom a NAT gave the InternalIP', { by: 'eth2', source: 'externalPeer', to: 'internal' }],
];

describe.each([
  ['eth0', 'ebpf'],
  ['lo', 'netlink'],
] as const)('the InternalIP is on %s, %s', (place, dataplane) => {
  let lab: MultihomedLab;
  beforeAll(async () => {
    lab = await openMultihomedLab(place);
  });
  afterAll(() => lab.close());

  describe.each([
    ['VXLAN', { port: 4789 }],
    ['GENEVE', { port: 6081 }],
    ['IPIP', { type: 'ipip' }],
  ] as const)('%s', (protocol, kind) => {
    const families = protocol === 'IPIP' ? ([4] as const) : FAMILIES;
    // The senders' check of the netlink data path would drop what the lab sends, which has nothing inside.
    const { senders: _, ...plan } = planWith(dataplane, protocol);
    beforeAll(() => lab.apply(plan));

    test.each(STRAYS)('%s: dropped', async (_, shot) => {
      // A tunnel to one far end leaves packets of others to whom they belong.
      const isLeft = shot.source === 'internet' && plan.tunnels.every(({ remoteIp }) => remoteIp !== undefined);
      for (const family of families)
        expect(await lab.shoot({ ...shot, ...kind }, family), `IPv${family}`).toBe(isLeft ? 'passed' : 'dropped');
    });
    test.each(TAKEN)('%s: passes', async (_, shot) => {
      for (const family of families)
        expect(await lab.shoot({ ...shot, ...kind }, family), `IPv${family}`).toBe('passed');
    });
  });

  test('a near node’s name by the other interface of the LAN: dropped; of IPv6 where that is no alternative to the first', async () => {
    const shot: Shot = { by: 'eth1', source: 'nearNode', to: 'internal' };
    const plan = planWith('ebpf', 'VXLAN');
    await lab.apply(plan);
    expect(await lab.shoot(shot, 4)).toBe('dropped');
    expect(await lab.shoot(shot, 6)).toBe('passed'); // other destinations have a route by both
    await lab.apply(plan, { network: NO_NETWORK });
    expect(await lab.shoot(shot, 6)).toBe('dropped');
  });

  test('an external peer is taken at an address on loopback, which a NAT or a router may lead to', async () => {
    await lab.apply(planWith('ebpf', 'VXLAN'));
    for (const family of FAMILIES)
      expect(await lab.shoot({ by: 'eth2', source: 'externalPeer', to: 'loopback' }, family)).toBe('passed');
  });

  test('packets of a kind of which there is no device are left to others, and to a device until it is gone', async () => {
    const shot: Shot = { by: 'eth2', source: 'nearNode', to: 'external', port: 6081 };
    const vxlan = planWith('ebpf', 'VXLAN');
    for (const family of FAMILIES) {
      await lab.apply(vxlan);
      expect(await lab.shoot(shot, family), `IPv${family}`).toBe('passed');
      await lab.apply(vxlan, { tunnels: [{ kind: 'GENEVE' }] });
      expect(await lab.shoot(shot, family), `IPv${family}`).toBe('dropped');
      expect(await lab.shoot({ ...shot, by: 'eth0', to: 'internal' }, family), `IPv${family}`).toBe('passed');
    }
    await lab.apply(vxlan, { tunnels: [{ kind: 'IPIP' }] });
    expect(await lab.shoot({ ...shot, type: 'ipip' }, 6), 'IPv4 in IPv6 is nothing of ours').toBe('passed');
  });

  test('where the InternalIP is that of a NAT, peers are taken at the address of the device', async () => {
    await lab.apply({ ...planWith('ebpf', 'VXLAN'), ownAddresses: [] });
    for (const family of FAMILIES) {
      expect(await lab.shoot({ by: 'eth0', source: 'nearNode', to: 'another' }, family), `IPv${family}`).toBe('passed');
      expect(await lab.shoot({ by: 'eth2', source: 'nearNode', to: 'another' }, family), `IPv${family}`).toBe(
        'dropped',
      );
    }
  });
});
