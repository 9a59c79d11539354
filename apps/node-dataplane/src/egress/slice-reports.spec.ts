import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import type { Cluster } from '@unbounded/kube';
import { expect, test } from 'vitest';
import { createSliceReports, statusOf } from './slice-reports.ts';

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

test('of what is not wholly in force nothing new is confirmed, but what was released, and that the agent lives', () => {
  const before = [
    { address: '192.0.2.9', epoch: 1 },
    { address: '192.0.2.2', epoch: 4 },
  ];
  const seen = { ...slice, status: { observedGeneration: 6, held: before } };
  const partly = { ...confirmed, isInForce: false };
  expect(statusOf(seen, { ...partly, held: new Set(['192.0.2.1', '192.0.2.2']) }, 0)).toMatchObject({
    held: before,
    released: [],
  });
  expect(statusOf(seen, { ...partly, held: new Set(['192.0.2.1']) }, 5000)).toEqual({
    observedGeneration: 6,
    held: [{ address: '192.0.2.9', epoch: 1 }],
    released: [{ address: '192.0.2.2', epoch: 4 }],
    heartbeat: 1,
    subnets: networks,
  });
});

test('what somebody took away is written again, and what stands is not', async () => {
  const writes: unknown[] = [];
  const mergePatch = async (...[, patch]: readonly unknown[]) => void writes.push(patch);
  const reports = createSliceReports({ client: () => ({ mergePatch }) } as unknown as Cluster, () => undefined);
  const second: EgressNodeSlice = { ...slice, spec: { ...slice.spec, index: 1 } };
  const held = new Set(['192.0.2.1']);
  /** As the agent has it at the moment. */
  const write = async (resourceVersion: string, status: EgressNodeSlice['status']): Promise<number> => {
    const seen = { ...second, metadata: { ...second.metadata, resourceVersion }, status } as EgressNodeSlice;
    await reports.write({ ...confirmed, slices: [seen], held }, AbortSignal.timeout(1000));
    return writes.length;
  };
  const status = statusOf(second, { ...confirmed, held }, 0);
  expect(await write('1', undefined)).toBe(1);
  expect(await write('1', undefined)).toBe(1); // the watch has not told of it yet
  const shuffled = { released: status.released, held: status.held, observedGeneration: 7 } as typeof status;
  expect(await write('2', shuffled)).toBe(1);
  expect(await write('3', undefined)).toBe(2); // cleared
  expect(await write('4', { ...status, held: [] })).toBe(3);
  expect(writes[2]).toMatchObject({ status });
});

test('further slices have no heartbeat and no networks', () => {
  const second = { ...slice, spec: { ...slice.spec, index: 1 } };
  expect(Object.keys(statusOf(second, { ...confirmed, held: new Set() }, 0))).toEqual([
    'observedGeneration',
    'held',
    'released',
  ]);
});
