import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import { expect, test } from 'vitest';

import { createKnownSubnets } from './known-subnets.ts';

const SUBNETS = [{ interface: 'eth0', cidr: '192.0.2.0/24' }];
const NODES = [{ metadata: { name: 'n1', uid: 'u1' } }];
const slice = (status: NonNullable<EgressNodeSlice['status']>): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: 'n1-0' },
  spec: { nodeName: 'n1', nodeUID: 'u1', index: 0 },
  status,
});
const subnetsOf = (slices: readonly EgressNodeSlice[]) =>
  slices.map(({ spec, status }) => [spec.nodeUID, status?.subnets]);

test('slices with reports, and of nodes that never reported, are as they are', () => {
  const known = createKnownSubnets();
  for (const slices of [[], [slice({})], [slice({ subnets: SUBNETS })]])
    expect(known.complete(slices, NODES)).toEqual(slices);
});

test('networks stay known while slice 0 is gone, and until the agent reports in the new one', () => {
  const known = createKnownSubnets();
  known.complete([slice({ subnets: SUBNETS })], NODES);
  expect(subnetsOf(known.complete([], NODES))).toEqual([['u1', SUBNETS]]);
  expect(known.complete([slice({ heartbeat: 7 })], NODES)).toEqual([slice({ heartbeat: 7, subnets: SUBNETS })]);
  expect(known.complete([slice({ subnets: [] })], NODES)).toEqual([slice({ subnets: [] })]);
  expect(subnetsOf(known.complete([], NODES))).toEqual([['u1', []]]);
});

test('a Node that is gone or made anew is not known', () => {
  const known = createKnownSubnets();
  known.complete([slice({ subnets: SUBNETS })], NODES);
  expect(known.complete([], [{ metadata: { name: 'n1', uid: 'u2' } }])).toEqual([]);
  expect(known.complete([], NODES)).toEqual([]);
});
