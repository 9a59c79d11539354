import { expect, test } from 'vitest';
import { type EgressSnapshot, planEgress, planSliceChanges } from '../index.ts';
import { egressPool, node, reportingSlice, snapshot, staticEgress, withConfirmations, written } from '../testdata.ts';

/** How many addresses a node gets: its kernel keeps none alive if there are more than 1,024 of a family. */

const MOST = 1000;
const pools = [egressPool({ blocks: ['2001:db8::1:0/112'] })];
/** So many objects, each with 512 addresses. */
const rulesOf = (objects: number) =>
  Array.from({ length: objects }, (_, number) =>
    staticEgress(
      Array.from({ length: 32 }, (_, index) => ({
        ...{ podSelector: {}, pool: 'public', addresses: 16 },
        cidr: `2001:db9:${number}:${index}::/64`,
      })),
      { name: `r${number}` },
    ),
  );
const withNodes = (count: number, rest: Partial<EgressSnapshot>): EgressSnapshot => {
  const nodes = Array.from({ length: count }, (_, index) => node(index + 1));
  return snapshot({ pools, pods: [], nodes, slices: nodes.map((one) => reportingSlice(one)), ...rest });
};
/** Addresses that slices give to each node. */
const counts = ({ slices }: ReturnType<typeof planEgress>): Record<string, number> => {
  const sums: Record<string, number> = {};
  for (const { nodeName, owned = [] } of slices.values()) sums[nodeName] = (sums[nodeName] ?? 0) + owned.length;
  return sums;
};
const step = (given: EgressSnapshot): EgressSnapshot => withConfirmations(written(given, planEgress(given)));

test('a node gets no more addresses of a family than it can hold, and the rest says so', () => {
  const plan = planEgress(step(withNodes(1, { rules: rulesOf(3) })));
  expect(counts(plan)).toEqual({ n1: MOST });
  const troubles = [...plan.ownerships.values()].filter(({ trouble }) => trouble === 'NodesFull');
  expect(troubles.length).toBe(3 * 512 - MOST);
  const conditions = [...plan.ruleStatuses.values()].flatMap(({ conditions }) => conditions);
  const full = conditions.find(({ type, reason }) => type === 'OwnersElected' && reason === 'NodesFull')!;
  expect(full.message).toContain(
    'each of the nodes that nodeSelector of EgressIPPool public selects that could own it has 1000 addresses of its family, the most of one node: add a node, or let rules have fewer addresses',
  );
});

test('nodes that are full are passed over, and at rest nothing moves', () => {
  let given = withNodes(2, { rules: rulesOf(3) });
  for (let round = 0; round < 3; round++) given = step(given);
  const plan = planEgress(given);
  expect(Object.values(counts(plan)).reduce((sum, count) => sum + count, 0)).toBe(3 * 512);
  expect(Math.max(...Object.values(counts(plan)))).toBeLessThanOrEqual(MOST);
  expect([...plan.ownerships.values()].every(({ trouble }) => trouble === undefined)).toBe(true);
  expect(planSliceChanges(given.slices, plan.slices)).toEqual([]);
});

test('a node that comes takes what the others have no room for', () => {
  let given = step(withNodes(1, { rules: rulesOf(3) }));
  const nodes = [node(1), node(2)];
  given = { ...given, nodes, slices: [...given.slices, reportingSlice(nodes[1]!)] };
  for (let round = 0; round < 5; round++) {
    given = step(given);
    expect(Math.max(...Object.values(counts(planEgress(given))))).toBeLessThanOrEqual(MOST);
  }
  const plan = planEgress(given);
  expect([...plan.ownerships.values()].every(({ trouble }) => trouble === undefined)).toBe(true);
  expect(planSliceChanges(given.slices, plan.slices)).toEqual([]);
});

test('a node that has too many, of a version before, gives the rest back', () => {
  const texts = Array.from({ length: 1100 }, (_, index) => `2001:db8::2:${(index + 1).toString(16)}`);
  const rules = Array.from({ length: 5 }, (_, object) =>
    staticEgress(
      Array.from({ length: 32 }, (_, index) => texts.slice((object * 32 + index) * 8, (object * 32 + index + 1) * 8))
        .filter((egressips) => egressips.length > 0)
        .map((egressips) => ({ podSelector: {}, egressips })),
      { name: `r${object}` },
    ),
  );
  const start = withNodes(2, { rules });
  const slices = start.slices.map((slice) =>
    slice.spec.nodeName === 'n1'
      ? {
          ...slice,
          spec: { ...slice.spec, owned: texts.map((address) => ({ address, epoch: 1, announce: 'L2' as const })) },
        }
      : slice,
  );
  let given = withConfirmations({ ...start, slices });
  for (let round = 0; round < 4; round++) given = step(given);
  const plan = planEgress(given);
  expect(Math.max(...Object.values(counts(plan)))).toBeLessThanOrEqual(MOST);
  expect(Object.values(counts(plan)).reduce((sum, count) => sum + count, 0)).toBe(texts.length);
  expect([...plan.ownerships.values()].every(({ trouble }) => trouble === undefined)).toBe(true);
});
