import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { statusOf } from './slice-reports.ts';

const slice: EgressNodeSlice = {
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: 'n1-0', generation: 7 },
  spec: {
    nodeName: 'n1',
    nodeUID: 'u1',
    index: 0,
    owned: [
      { address: '192.0.2.1', epoch: 3, announce: 'L2' },
      { address: '192.0.2.2', epoch: 4, announce: 'L2', release: true },
    ],
  },
  status: { observedGeneration: 6, held: [{ address: '192.0.2.9', epoch: 1 }] },
};
const networks = [{ interface: 'eth0', cidr: '192.0.2.0/24' }];
const confirmed = { slices: [slice], isInForce: true, staying: new Set<string>(), networks };

test('what the node has is held, and what it was to release and has no more is released', () => {
  expect(statusOf(slice, { ...confirmed, held: new Set(['192.0.2.1']) }, 12_000)).toEqual({
    observedGeneration: 7,
    held: [{ address: '192.0.2.1', epoch: 3 }],
    released: [{ address: '192.0.2.2', epoch: 4 }],
    heartbeat: 2,
    subnets: networks,
  });
});

test('an address that is to be released and is still there is neither; one that is not there yet is not held', () => {
  const nothing = { held: [], released: [] };
  const there = new Set(['192.0.2.2']);
  expect(statusOf(slice, { ...confirmed, held: there }, 0)).toMatchObject(nothing);
  expect(statusOf(slice, { ...confirmed, held: new Set(), staying: there }, 0)).toMatchObject(nothing);
});

test('of what is not wholly in force nothing new is confirmed, but that the agent lives', () => {
  expect(statusOf(slice, { ...confirmed, isInForce: false, held: new Set(['192.0.2.1']) }, 5000)).toEqual({
    observedGeneration: 6,
    held: [{ address: '192.0.2.9', epoch: 1 }],
    released: [],
    heartbeat: 1,
    subnets: networks,
  });
});

test('further slices have no heartbeat and no networks', () => {
  const second = { ...slice, spec: { ...slice.spec, index: 1 } };
  expect(Object.keys(statusOf(second, { ...confirmed, held: new Set() }, 0))).toEqual([
    'observedGeneration',
    'held',
    'released',
  ]);
});
