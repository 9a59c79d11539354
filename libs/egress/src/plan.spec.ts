import { parseAddress } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EgressPlan, type EgressSnapshot, explain, planEgress, planSliceChanges } from './index.ts';
import { anySnapshot } from './random-egress.testdata.ts';
import { node, reportingSlice, withConfirmations, written } from './testdata.ts';

const settled = (given: EgressSnapshot): EgressSnapshot => {
  let current = given;
  for (let round = 0; round < 4; round++) current = withConfirmations(written(current, planEgress(current)));
  return current;
};

const reversed = (given: EgressSnapshot): EgressSnapshot => ({
  ...given,
  rules: given.rules.toReversed(),
  pools: given.pools.toReversed(),
  slices: given.slices.toReversed(),
  nodes: given.nodes.toReversed(),
  pods: given.pods.toReversed(),
  services: given.services.toReversed(),
  namespaces: given.namespaces.toReversed(),
});

const visible = ({ ruleStatuses, poolStatuses, slices }: EgressPlan) => ({
  ruleStatuses,
  poolStatuses: Object.fromEntries(poolStatuses),
  slices,
});

test('the same snapshot gives the same plan, in whatever order', () => {
  fc.assert(
    fc.property(anySnapshot, (given) => {
      const once = settled(given);
      expect(visible(planEgress(reversed(once)))).toEqual(visible(planEgress(once)));
    }),
  );
});

test('a plan that is written and confirmed leads to no further write', () => {
  fc.assert(
    fc.property(anySnapshot, (given) => {
      const once = settled(given);
      const plan = planEgress(once);
      expect(planSliceChanges(once.slices, plan.slices)).toEqual([]);
      for (const { metadata, status } of once.rules) {
        const key = `StaticEgressIP/${metadata.namespace}/${metadata.name}`;
        expect(plan.ruleStatuses.get(key)!.addresses).toEqual(status!.addresses);
      }
    }),
  );
});

test('what a plan writes changes no plan: the writer needs none until others have written', () => {
  fc.assert(
    fc.property(anySnapshot, (given) => {
      const known = new Set(given.slices.map(({ metadata }) => metadata.name));
      const after = written(given, planEgress(given));
      // No agent has reported yet in what is new.
      const slices = after.slices.map((slice) => (known.has(slice.metadata.name) ? slice : { ...slice, status: {} }));
      const once = { ...after, slices };
      const plan = planEgress(once);
      expect(planSliceChanges(once.slices, plan.slices)).toEqual([]);
      for (const { kind, metadata, status } of [...once.rules, ...once.clusterRules]) {
        const key = [kind, ...(metadata.namespace === undefined ? [] : [metadata.namespace]), metadata.name].join('/');
        const planned = plan.ruleStatuses.get(key)!;
        expect(planned.addresses).toEqual(status!.addresses);
      }
    }),
  );
});

/** Addresses and their owners. */
const owners = (given: EgressSnapshot): ReadonlyMap<string, string | undefined> =>
  new Map([...planEgress(given).ownerships].map(([address, { owner }]) => [address, owner]));

test('a node that comes takes addresses for itself only, and one that goes loses its own only', () => {
  const rest = [1, 2, 3, 4].map((number) => node(number));
  const extra = node(5);
  fc.assert(
    fc.property(anySnapshot, (given) => {
      const before = settled({ ...given, nodes: rest, slices: rest.map((one) => reportingSlice(one)) });
      const grown = settled({
        ...before,
        nodes: [...rest, extra],
        slices: [...before.slices, reportingSlice(extra)],
      });
      const [had, has] = [owners(before), owners(grown)];
      for (const [address, owner] of has) expect([had.get(address), extra.name]).toContain(owner);
      expect(owners(settled({ ...grown, nodes: rest }))).toEqual(had);
    }),
  );
});

test('what nodes are given is what is explained: a packet leaves from the node that lists its pod as a source', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      anySnapshot,
      fc.constantFrom('198.51.100.7', '198.51.7.7', '2001:db8:9::7', '203.0.114.7'),
      (given, text) => {
        const snapshot = settled(given);
        const plan = planEgress(snapshot);
        for (const pod of snapshot.pods) {
          const { verdict, owner, address } = explain({ plan, snapshot }, pod, parseAddress(text));
          seen.add(verdict);
          if (verdict !== 'Egress') continue;
          const sources = [...plan.slices.values()].filter(({ nodeName }) => nodeName === owner);
          expect(sources.some((slice) => (slice.sources ?? []).some(({ uid }) => uid === pod.uid))).toBe(true);
          expect(
            sources.some((slice) => (slice.owned ?? []).some((entry) => entry.address === address && !entry.release)),
          ).toBe(true);
        }
      },
    ),
  );
  expect([...seen].toSorted()).toEqual(['Dropped', 'Egress', 'NodeAddress']);
});
