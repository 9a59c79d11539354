import type { OwnedAddress } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { planNodeEgress } from './node.plan.ts';

const ADDRESS = '192.0.2.9';
const owned = (more: Partial<OwnedAddress>): OwnedAddress => ({ address: ADDRESS, epoch: 1, announce: 'L2', ...more });
const planned = (address: OwnedAddress) => {
  const { plan, problems } = planNodeEgress({
    node: 'n1',
    slices: [
      {
        apiVersion: 'net.unbounded-cloud.io/v1alpha1',
        kind: 'EgressNodeSlice',
        metadata: { name: 'n1-0' },
        spec: { nodeName: 'n1', nodeUID: 'u1', index: 0, owned: [address] },
      },
    ],
    granted: new Set([address.address]),
    pods: [],
    peers: {
      ...{ overlayAddresses: ['100.64.1.1'], mtuBytes: 1450, podCidrs: [], keepsSource: [], apiServer: [] },
      locator: undefined,
      native: [],
      routed: [],
      locators: () => new Map(),
      nodes: () => [],
    },
    ...{ overlayDevices: [], apiServices: [] },
    deviceOf: (text) => (text.startsWith('192.0.2.') ? 'eth0' : undefined),
  });
  return { addresses: plan.addresses, problems: problems.map(({ message }) => message) };
};

test('the device of a next hop is the one with its subnet', () => {
  expect(planned(owned({ nextHops: ['2001:db8::1', '192.0.2.1'] }))).toEqual({
    addresses: [{ address: ADDRESS, device: 'eth0', nextHop: { router: '192.0.2.1', device: 'eth0' } }],
    problems: [],
  });
});

test('one in no subnet of the node is at the interface of the pool', () => {
  expect(planned(owned({ nextHops: ['198.51.100.1'], interface: 'eth7', announce: 'None' })).addresses).toEqual([
    { address: ADDRESS, device: undefined, nextHop: { router: '198.51.100.1', device: 'eth7' } },
  ]);
});

test('without either nothing leaves with the address, and the node says why', () => {
  const far = { address: '203.0.113.5', nextHops: ['198.51.100.1'], announce: 'None' } as const;
  expect(planned(owned(far))).toEqual({
    addresses: [],
    problems: [
      expect.stringContaining('203.0.113.5: the node has no device with a subnet that holds the next hop 198.51.100.1'),
    ],
  });
});

test('a next hop of the other family alone leaves the address to the routes of the node', () => {
  expect(planned(owned({ nextHops: ['2001:db8::1'] })).addresses).toEqual([{ address: ADDRESS, device: 'eth0' }]);
});
