import type { EgressNodeSlice, EgressNodeSliceSpec, OwnedAddress } from '@unbounded/crds';
import { expect, test } from 'vitest';
import { type EgressSnapshot, planEgress, planSliceChanges } from '../index.ts';
import { node, reportingSlice, snapshot, staticEgress, withConfirmations, written } from '../testdata.ts';

/** Steps of a release that random histories reach too seldom. */

const ADDRESS = '192.0.2.210';
const rules = [staticEgress([{ podSelector: {}, egressip: ADDRESS }])];
const entry = (epoch: number, release = false): OwnedAddress =>
  release ? { address: ADDRESS, epoch, release, announce: 'None' } : { address: ADDRESS, epoch, announce: 'L2' };
const sliceWith = (number: number, owned: OwnedAddress[], releasedEpochs: number[] = []): EgressNodeSlice => {
  const slice = reportingSlice(node(number));
  const released = releasedEpochs.map((epoch) => ({ address: ADDRESS, epoch }));
  return {
    ...slice,
    spec: { ...slice.spec, ...(owned.length > 0 && { owned }) },
    status: { ...slice.status, released },
  };
};
/** The node that the address prefers, and another one; both answer. */
const preferredNumber = Number(planEgress(snapshot({ rules })).ownerships.get(ADDRESS)!.owner!.slice(1));
const otherNumber = (preferredNumber % 3) + 1;
const given = (...slices: EgressNodeSlice[]): EgressSnapshot => {
  const names = new Set(slices.map(({ metadata }) => metadata.name));
  const rest = [1, 2, 3].map((number) => sliceWith(number, [])).filter(({ metadata }) => !names.has(metadata.name));
  return snapshot({ rules, slices: [...slices, ...rest] });
};
const ownershipIn = (one: EgressSnapshot) => planEgress(one).ownerships.get(ADDRESS)!;

test('a release that was confirmed for an earlier epoch does not count', () => {
  const stale = given(sliceWith(otherNumber, [entry(2, true)], [1]));
  expect(ownershipIn(stale)).toMatchObject({
    owner: undefined,
    trouble: 'AwaitingRelease',
    blockedBy: `n${otherNumber}`,
  });
  const current = given(sliceWith(otherNumber, [entry(2, true)], [2]));
  expect(ownershipIn(current)).toMatchObject({ owner: `n${preferredNumber}`, epoch: 3 });
});

test('a node that gets back what it was to release gets it with a new epoch, which its confirmation on the way does not end', () => {
  const { owner, epoch } = ownershipIn(given(sliceWith(preferredNumber, [entry(4, true)])));
  expect({ owner, epoch }).toEqual({ owner: `n${preferredNumber}`, epoch: 5 });
});

test('a release that was confirmed for a later epoch than was asked for does not count', () => {
  const ahead = given(sliceWith(otherNumber, [entry(2, true)], [3, 7, Number.MAX_SAFE_INTEGER]));
  expect(ownershipIn(ahead)).toMatchObject({ owner: undefined, trouble: 'AwaitingRelease' });
});

test('an address without a grant gets an epoch above all that its new owner has ever reported of it', () => {
  expect(ownershipIn(given(sliceWith(preferredNumber, [], [8]))).epoch).toBe(9);
});

test('what another node reports of an address that it does not own changes no grant', () => {
  for (const epoch of [8, Number.MAX_SAFE_INTEGER]) {
    expect(ownershipIn(given(sliceWith(otherNumber, [], [epoch]))).epoch).toBe(1);
    const moving = given(sliceWith(preferredNumber, [entry(4, true)], [4]), sliceWith(otherNumber, [], [epoch]));
    expect(ownershipIn(moving)).toMatchObject({ owner: `n${preferredNumber}`, epoch: 5 });
  }
});

test('an absurd epoch that a node reports of itself counts for nothing, and the next one fits the schema', () => {
  const slice = sliceWith(preferredNumber, [], [Number.MAX_SAFE_INTEGER]);
  expect(ownershipIn(given(slice)).epoch).toBe(1);
});

test('without anybody who could own the address the status of the rule keeps no epoch that a node made up, and loses one it has', () => {
  const held = [{ address: ADDRESS, epoch: Number.MAX_SAFE_INTEGER }];
  const poisoned = sliceWith(otherNumber, []);
  const slices = [{ ...poisoned, status: { ...poisoned.status, held } }];
  const nodes = [1, 2, 3].map((number) => node(number, { isAlive: false }));
  const statusIn = (one: EgressSnapshot) => planEgress(one).ruleStatuses.get('StaticEgressIP/shop/partner')!.addresses;
  expect(statusIn({ ...given(...slices), nodes })).toMatchObject([{ epoch: 0 }]);
  const addresses = [{ address: ADDRESS, rule: 0, selection: '', epoch: Number.MAX_SAFE_INTEGER }];
  const former = [staticEgress([{ podSelector: {}, egressip: ADDRESS }], {}, { addresses })];
  expect(statusIn({ ...given(), rules: former })).toMatchObject([{ epoch: 1, node: `n${preferredNumber}` }]);
});

test('a silent owner whose slice was deleted keeps its address, whatever other nodes report of it', () => {
  const owned = { address: ADDRESS, rule: 0, selection: '', node: `n${preferredNumber}`, epoch: 1 };
  const recorded = [staticEgress([{ podSelector: {}, egressip: ADDRESS }], {}, { addresses: [owned] })];
  const nodes = [1, 2, 3].map((number) => node(number, { isAlive: number !== preferredNumber }));
  for (const epochs of [[], [5], [Number.MAX_SAFE_INTEGER]]) {
    const slices = [sliceWith(otherNumber, [], epochs)];
    expect(ownershipIn({ ...given(), rules: recorded, nodes, slices })).toEqual({
      owner: `n${preferredNumber}`,
      epoch: 1,
      trouble: 'OwnerSilent',
      blockedBy: `n${preferredNumber}`,
    });
  }
});

test('what an agent says that it holds counts for what its slice gives it alone', () => {
  const held = [{ address: ADDRESS, epoch: 4 }];
  const owner = sliceWith(preferredNumber, [entry(4)]);
  const elsewhere = { ...owner.status, held };
  const second: EgressNodeSlice = {
    ...owner,
    metadata: { name: `n${preferredNumber}-1` },
    spec: { nodeName: `n${preferredNumber}`, nodeUID: `uid-n${preferredNumber}`, index: 1 },
    status: { held },
  };
  expect(ownershipIn(given(owner, second)).trouble).toBe('AddressNotHeld');
  expect(ownershipIn(given({ ...owner, status: elsewhere })).trouble).toBeUndefined();
});

test('two grants that nobody planned are both released, and nobody owns the address meanwhile', () => {
  const both = given(sliceWith(1, [entry(1)]), sliceWith(2, [entry(2)]));
  const plan = planEgress(both);
  expect(plan.ownerships.get(ADDRESS)).toMatchObject({ owner: undefined, trouble: 'AwaitingRelease' });
  const releases = [...plan.slices.values()].flatMap(({ owned = [] }) => owned.map(({ release }) => release));
  expect(releases).toEqual([true, true]);
});

test('what a Node had before it was made anew waits for its time alone, is nobody’s until then, and is free afterwards', () => {
  const name = `n${preferredNumber}`;
  const formerGrants = [{ node: name, address: ADDRESS, epoch: 4 }];
  const nodes = [1, 2, 3].map((number) => node(number, number === preferredNumber ? { uid: 'anew' } : {}));
  const owned = { address: ADDRESS, rule: 0, selection: '', node: name, epoch: 4 };
  const recorded = [staticEgress([{ podSelector: {}, egressip: ADDRESS }], {}, { addresses: [owned] })];
  let current: EgressSnapshot = {
    ...given(sliceWith(preferredNumber, [entry(4)])),
    nodes,
    formerGrants,
    rules: recorded,
  };
  for (let round = 0; round < 3; round++) {
    const plan = planEgress(current);
    expect(plan.ownerships.get(ADDRESS)).toMatchObject({
      owner: undefined,
      trouble: 'AwaitingRelease',
      blockedBy: name,
    });
    expect([...plan.slices.values()].flatMap((slice) => slice.owned ?? [])).toEqual([]);
    current = withConfirmations(written(current, plan));
  }
  // The new machine may never answer: nobody waits for its word.
  const silent = nodes.map((one) => (one.name === name ? { ...one, isAlive: false } : one));
  const { owner, epoch } = ownershipIn({ ...current, formerGrants: [], nodes: silent });
  expect([owner === undefined, owner === name, epoch]).toEqual([false, false, 5]);
  expect(ownershipIn({ ...current, formerGrants: [] })).toMatchObject({ owner: name, epoch: 5 });
  // An operator who knows that both are off need not wait.
  const fenced = silent.map((one) => (one.name === name ? { ...one, isFenced: true } : one));
  expect(ownershipIn({ ...current, nodes: fenced }).trouble).toBe('AddressNotHeld');
});

const spec = (name: string, owned: OwnedAddress[]): EgressNodeSliceSpec => ({
  nodeName: name,
  nodeUID: `uid-${name}`,
  index: 0,
  ...(owned.length > 0 && { owned }),
});
const object = (name: string, owned: OwnedAddress[]): EgressNodeSlice => ({
  ...sliceWith(1, []),
  metadata: { name: `${name}-0` },
  spec: spec(name, owned),
});
const other: OwnedAddress = { address: '192.0.2.211', epoch: 1, announce: 'L2' };

test('where an address ends is written before where it begins, and one slice twice if it does both', () => {
  const former = [object('a', [other]), object('z', [entry(1)])];
  const wanted = new Map([
    ['a-0', spec('a', [entry(2)])],
    ['z-0', spec('z', [{ ...other, epoch: 2 }])],
  ]);
  expect(planSliceChanges(former, wanted)).toEqual([
    { name: 'a-0', spec: spec('a', []) },
    { name: 'z-0', spec: spec('z', []) },
    { name: 'a-0', spec: spec('a', [entry(2)]) },
    { name: 'z-0', spec: spec('z', [{ ...other, epoch: 2 }]) },
  ]);
});

test('a release that becomes a grant again stays a release in between, so that no record of the holder is missing', () => {
  const changes = planSliceChanges([object('a', [entry(1, true), other])], new Map([['a-0', spec('a', [entry(2)])]]));
  expect(changes.map((change) => change.spec?.owned)).toEqual([[entry(1, true)], [entry(2)]]);
});

test('at rest nothing is written', () => {
  expect(planSliceChanges([object('a', [other])], new Map([['a-0', spec('a', [other])]]))).toEqual([]);
});
