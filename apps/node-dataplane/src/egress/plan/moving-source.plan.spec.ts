import type { EgressNodeSlice } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { planNodeEgress } from './node.plan.ts';

const sliceOf = (index: number, addresses: readonly string[]): EgressNodeSlice => ({
  ...{ apiVersion: 'net.unbounded-cloud.io/v1alpha1', kind: 'EgressNodeSlice', metadata: { name: `n1-${index}` } },
  spec: {
    ...{ nodeName: 'n1', nodeUID: 'u1', index },
    routes: [{ rule: 'StaticEgressIP/shop/a/0', destinations: ['0.0.0.0/0'], whenUnavailable: 'Drop' }],
    sources: [{ uid: 'p1', node: 'n2', addresses: [...addresses], routes: [0] }],
  },
});

test('a pod of another node that is in two slices while it moves from one to the other is one source', () => {
  const { plan } = planNodeEgress({
    ...{ node: 'n1', slices: [sliceOf(9, ['100.64.2.7']), sliceOf(10, ['100.64.2.7'])] },
    ...{ granted: new Set<string>(), pods: [], overlayDevices: [], apiServices: [], deviceOf: () => undefined },
    peers: {
      ...{ overlayAddresses: ['100.64.1.1'], mtuBytes: 1450, podCidrs: [], keepsSource: [], apiServer: [] },
      ...{ locator: undefined, native: [], routed: [], locators: () => new Map(), nodes: () => [] },
    },
  });
  expect(plan.translated.flatMap(({ pods }) => pods)).toEqual([{ uid: 'p1', node: 'n2', addresses: ['100.64.2.7'] }]);
});
