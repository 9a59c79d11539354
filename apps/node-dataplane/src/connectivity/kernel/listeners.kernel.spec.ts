import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { METRICS_PORTS } from '@unbounded/config/ownership';
import { planOf } from './boundary-lab.testdata.ts';
import { FAMILIES } from './boundary-network.testdata.ts';
import { type MultihomedLab, openMultihomedLab, type Shot } from './multihomed-lab.testdata.ts';

/** By which devices the listeners for metrics are reached. What a row names is sent once in each family. */

type Row = readonly [what: string, shot: Omit<Shot, 'type'>];

const STRAYS: readonly Row[] = [
  ['from the WAN', { by: 'eth2', source: 'internet', to: 'internal' }],
  ['from the WAN, in the name of a near node', { by: 'eth2', source: 'nearNode', to: 'internal' }],
  ['from the WAN, in the name of a pod of the node', { by: 'eth2', source: 'ownPod', to: 'internal' }],
  ['from the WAN, in the name of a pod of another site', { by: 'eth2', source: 'farPod', to: 'internal' }],
  ['from the WAN, in the name of a far node', { by: 'eth2', source: 'farNode', to: 'internal' }],
  ['by an interface of another subnet', { by: 'eth1', source: 'nearNode', to: 'internal' }],
];
const ANSWERED: readonly Row[] = [
  ['by the interface that has it', { by: 'eth0', source: 'nearNode', to: 'internal' }],
  ['by another interface of its subnet', { by: 'eth3', source: 'nearNode', to: 'internal' }],
  ['from another site by the overlay', { by: 'vxlan0', source: 'farPod', to: 'internal' }],
  ['from a node of another site by the overlay', { by: 'vxlan0', source: 'farNode', to: 'internal' }],
  ['from a pod of the node whose bridge is another plugin’s', { by: 'cni0', source: 'ownPod', to: 'internal' }],
  ['from the node itself', { by: 'lo', source: 'internal', to: 'internal' }],
  ['from the node itself, with its external address', { by: 'lo', source: 'external', to: 'internal' }],
  ['an external address, which a flag may name, by the WAN', { by: 'eth2', source: 'internet', to: 'external' }],
  ['an address on loopback, by the WAN', { by: 'eth2', source: 'internet', to: 'loopback' }],
  ['another address of the LAN, by the LAN', { by: 'eth0', source: 'nearNode', to: 'another' }],
];

describe('the InternalIP is on an interface', () => {
  let lab: MultihomedLab;
  beforeAll(async () => {
    const plan = planOf({ role: 'gateway', protocol: 'VXLAN', dataplane: 'ebpf' });
    lab = await openMultihomedLab('eth0', { ...plan, manageCni: false }); // whose pods' addresses no other rule looks at
  });
  afterAll(() => lab.close());

  test.each(STRAYS)('%s: dropped at every port of metrics', async (_, shot) => {
    for (const family of FAMILIES)
      for (const port of METRICS_PORTS)
        expect(await lab.shoot({ ...shot, type: 'tcp', port }, family), `IPv${family}`).toBe('dropped');
  });
  test.each(ANSWERED)('%s: passes', async (_, shot) => {
    for (const family of FAMILIES)
      expect(await lab.shoot({ ...shot, type: 'tcp', port: 9998 }, family), `IPv${family}`).toBe('passed');
  });
  test.each([22, 443, 3478, 3479, 6443, 10_250])(
    'port %i, which is no listener of ours for metrics, passes',
    async (port) => {
      for (const family of FAMILIES)
        expect(await lab.shoot({ by: 'eth2', source: 'internet', to: 'internal', type: 'tcp', port }, family)).toBe(
          'passed',
        );
    },
  );
  test('a port that an option names is one of metrics', async () => {
    await lab.apply(lab.plan, { metricsPorts: [8080] });
    const shot: Shot = { by: 'eth2', source: 'internet', to: 'internal', type: 'tcp', port: 8080 };
    for (const family of FAMILIES) {
      expect(await lab.shoot(shot, family)).toBe('dropped');
      expect(await lab.shoot({ ...shot, port: 9998 }, family)).toBe('passed');
    }
    await lab.apply(lab.plan);
  });
});

test('an InternalIP on loopback is one of the whole node: it is reached by every interface', async () => {
  const lab = await openMultihomedLab('lo');
  for (const by of ['eth0', 'eth1', 'eth2', 'eth3'] as const)
    for (const family of FAMILIES)
      expect(await lab.shoot({ by, source: 'nearNode', to: 'internal', type: 'tcp', port: 9998 }, family), by).toBe(
        'passed',
      );
  lab.close();
});
