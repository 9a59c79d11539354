import { type EgressNodeSlice, GROUP_VERSION } from '@unbounded/crds';
import { expect, test } from 'vitest';

import { createGoneNodes } from './gone-nodes.ts';

const node = (name: string, uid = `uid-${name}`) => ({ metadata: { name, uid } });
const slice = (name: string, addresses: readonly string[] = ['192.0.2.1']): EgressNodeSlice => ({
  apiVersion: GROUP_VERSION,
  kind: 'EgressNodeSlice',
  metadata: { name: `${name}-0` },
  spec: {
    nodeName: name,
    nodeUID: `uid-${name}`,
    index: 0,
    owned: addresses.map((address) => ({ address, epoch: 1, announce: 'L2' })),
  },
});

let nowMs = 0;
const open = () => createGoneNodes({ graceMs: 1000, key: 'k', now: () => nowMs });

test('an owner whose Node is gone counts as there for its time, silent, and no longer', () => {
  const gone = open();
  expect(gone.complete([node('n1')], [slice('n1')])).toEqual([node('n1')]);
  expect(gone.complete([node('n2')], [slice('n1')])).toEqual([node('n2'), node('n1')]);
  nowMs += 999;
  expect(gone.complete([], [slice('n1')])).toEqual([node('n1')]);
  nowMs += 1;
  expect(gone.complete([], [slice('n1')])).toEqual([]);
  expect(gone.complete([], [slice('n1')])).toEqual([]);
});

test('a Node without addresses is gone at once', () => {
  expect(open().complete([], [slice('n1', [])])).toEqual([]);
});

test('what a Node had that is made anew under its name is held for the same time, whatever its slices say then', () => {
  const gone = open();
  const grant = { node: 'n1', address: '192.0.2.1', epoch: 1 };
  gone.complete([node('n1')], [slice('n1')]);
  expect(gone.formerGrants()).toEqual([]);
  nowMs += 100;
  expect(gone.complete([], [slice('n1')])).toEqual([node('n1')]);
  nowMs += 400;
  const anew = node('n1', 'another');
  expect(gone.complete([anew], [slice('n1')])).toEqual([anew]);
  expect(gone.formerGrants()).toEqual([grant]);
  const own = { ...slice('n1', []), spec: { ...slice('n1', []).spec, nodeUID: 'another' } };
  nowMs += 599;
  expect(gone.complete([anew], [own])).toEqual([anew]);
  expect(gone.formerGrants()).toEqual([grant]);
  nowMs += 1;
  gone.complete([anew], [own]);
  expect(gone.formerGrants()).toEqual([]);
});

test('a Node that comes back with its UID has its time again when it goes again', () => {
  const gone = open();
  gone.complete([], [slice('n1')]);
  nowMs += 900;
  gone.complete([node('n1')], [slice('n1')]);
  nowMs += 900;
  expect(gone.complete([], [slice('n1')])).toEqual([node('n1')]);
});

test('a plan is asked for when the time is over', async () => {
  const gone = createGoneNodes({ graceMs: 10, key: 'k' });
  const asked = new Promise<string>((resolve) => gone.source.connect(resolve));
  gone.complete([], [slice('n1')]);
  expect(await asked).toBe('k');
});
