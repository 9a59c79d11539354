import { MAX_EGRESS_SLICE_PODS, MAX_EGRESS_SLICE_ROUTES, type StaticEgressRule } from '@unbounded/crds';
import { growthBelow } from '@unbounded/testing/growth';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { KeyedRoute } from '../pods/routes.plan.ts';
import { planEgress } from '../plan.ts';
import type { EgressPod, EgressSnapshot } from '../snapshot.ts';
import { node, pod, reportingSlice, snapshot, staticEgress, withConfirmations, written } from '../testdata.ts';
import { planSliceChanges } from './changes.plan.ts';
import { placePods, type SliceEntry } from './pod-places.ts';

/** What rules and pods of one namespace can do to the slices that others need. */

const MIB = 1024 * 1024;
const RULES_OF_OBJECT = 32;
const RULES_OF_POD = 64;

const numbers = (count: number): number[] => Array.from({ length: count }, (_, number) => number);
const hex = (number: number): string => (0x1000 + number).toString(16);

/** As long as exceptions can be. */
const longExcept = numbers(64).map((number) => `2001:db8:${hex(number)}:5678:9abc:def0:1234:5678/128`);

/** Rules in objects of 32; the pods have labels by number, and each its own rules. */
const rulesOfPods = (namespace: string, pods: number, rest: Partial<StaticEgressRule>) =>
  numbers((pods * RULES_OF_POD) / RULES_OF_OBJECT).map((object) =>
    staticEgress(
      numbers(RULES_OF_OBJECT).map((index) => {
        const number = object * RULES_OF_OBJECT + index;
        return {
          podSelector: { matchLabels: { number: `${Math.floor(number / RULES_OF_POD)}` } },
          egressip: '2001:db8::200',
          cidr: `2001:db9:${hex(number)}::/48`,
          ...rest,
        };
      }),
      { namespace, name: `r${object}` },
    ),
  );
const podsOfRules = (namespace: string, count: number): EgressPod[] =>
  numbers(count).map((number) =>
    pod(number, { namespace, uid: `uid-${namespace}-${number}`, labels: { number: `${number}` } }),
  );

const nodes = [node(1), node(2)];
const slices = nodes.map((one) => reportingSlice(one));
const step = (given: EgressSnapshot): EgressSnapshot => withConfirmations(written(given, planEgress(given)));

/** The routes of a pod as its agent reads them. */
const readRoutes = (given: EgressSnapshot, uid: string) =>
  given.slices.flatMap(({ spec }) =>
    (spec.pods ?? [])
      .filter((entry) => entry.uid === uid)
      .flatMap((entry) => entry.routes.map((place) => spec.routes![place]!)),
  );

test('rules with many long exceptions make more slices, each small enough for etcd and none without its routes', () => {
  const [rules, pods] = [rulesOfPods('a', 12, { except: longExcept }), podsOfRules('a', 12)];
  const before = snapshot({ nodes, slices, rules, pods });
  const plan = planEgress(before);
  const { routedPods, slices: planned } = plan;
  const given = written(before, plan);
  expect(JSON.stringify([...planned.values()]).length).toBeGreaterThan(4 * MIB); // at the pods' node and at the owner
  for (const spec of planned.values()) expect(JSON.stringify(spec).length).toBeLessThan(MIB);
  for (const { uid } of pods) {
    expect(readRoutes(given, uid)).toHaveLength(RULES_OF_POD);
    expect(readRoutes(given, uid)).toEqual(routedPods.get(uid)!.routes.map(({ route }) => route));
  }
});

test('the routes of a namespace crowd out none of another, whichever comes first in the alphabet', () => {
  const own = [{ podSelector: {}, egressip: '192.0.2.201' }];
  const given = snapshot({
    nodes,
    slices,
    rules: [
      ...rulesOfPods('m', 32, {}),
      staticEgress(own, { namespace: 'a', name: 'own' }),
      staticEgress(own, { namespace: 'z', name: 'own' }),
    ],
    pods: [...podsOfRules('m', 32), pod(1, { namespace: 'a', uid: 'uid-a' }), pod(1, { namespace: 'z', uid: 'uid-z' })],
  });
  const after = step(given);
  for (const name of ['a', 'z']) {
    expect(readRoutes(after, `uid-${name}`).map(({ rule }) => rule)).toEqual([`StaticEgressIP/${name}/own/0`]);
  }
  const all = after.slices.flatMap(({ spec }) => spec.routes ?? []);
  expect(all.filter(({ rule }) => rule.startsWith('none'))).toEqual([]);
});

test('a pod that comes moves none of those that stand, however full their slices are', () => {
  const rules = rulesOfPods('a', 8, { except: longExcept });
  const given = step(snapshot({ nodes, slices, rules, pods: podsOfRules('a', 7) }));
  expect(planSliceChanges(given.slices, planEgress(given).slices)).toEqual([]);
  const more = step({ ...given, pods: podsOfRules('a', 8) });
  const placesOf = ({ slices: own }: EgressSnapshot): ReadonlyMap<string, string> =>
    new Map(own.flatMap(({ metadata, spec }) => (spec.pods ?? []).map(({ uid }) => [uid, metadata.name] as const)));
  const [before, after] = [placesOf(given), placesOf(more)];
  expect(after.size).toBe(8);
  for (const [uid, place] of before) expect(after.get(uid)).toBe(place);
});

const route = (key: string, bytes: number): KeyedRoute => ({
  key,
  bytes,
  route: { rule: key, destinations: ['::/0'], whenUnavailable: 'Drop' },
});
const entry = (uid: string, namespace: string, routes: readonly KeyedRoute[]): SliceEntry => ({
  key: uid,
  pod: pod(1, { uid, namespace }),
  routes,
});
const routesOf = (prefix: string, count: number, bytes: number): KeyedRoute[] =>
  numbers(count).map((number) => route(`${prefix}${number}`, bytes));

test('where a slice overflows, pods of the namespace that has grown move', () => {
  const quiet = ['z1', 'z2'].map((uid) => entry(uid, 'z', routesOf(uid, 10, 1000)));
  const small = numbers(8).map((number) => entry(`a${number}`, 'a', routesOf(`a${number}-`, 64, 300)));
  const large = numbers(8).map((number) => entry(`a${number}`, 'a', routesOf(`a${number}-`, 64, 3000)));
  const first = placePods([...small, ...quiet], new Map());
  expect(new Set(first.values())).toEqual(new Set([0]));
  const second = placePods([...large, ...quiet], first);
  expect(quiet.map(({ key }) => second.get(key))).toEqual([0, 0]);
  expect(large.filter(({ key }) => second.get(key) === 0)).toHaveLength(3); // what fits beside them
});

test('routes that grow by the names of their owners move no pod', () => {
  const grown = (bytes: number) =>
    numbers(30).map((number) => entry(`p${number}`, 'a', routesOf(`p${number}`, 64, bytes)));
  const first = placePods(grown(200), new Map());
  expect(new Set(first.values())).toEqual(new Set([0]));
  expect(placePods(grown(350), first)).toEqual(first);
});

const anyEntries = fc
  .uniqueArray(
    fc.record({
      uid: fc.integer({ min: 0, max: 60 }),
      namespace: fc.constantFrom('a', 'b', 'c'),
      from: fc.integer({ min: 0, max: 2500 }),
      count: fc.integer({ min: 1, max: RULES_OF_POD }),
    }),
    { selector: ({ uid }) => uid, maxLength: 50 },
  )
  .map((all) =>
    all.map(({ uid, namespace, from, count }) =>
      entry(
        `p${uid}`,
        namespace,
        numbers(count).map((place) => route(`r${from + place}`, 100 + (((from + place) * 7919) % 4000))),
      ),
    ),
  );

test('no slice is too large, a placement stays as it is, and what goes moves nothing', () => {
  fc.assert(
    fc.property(anyEntries, anyEntries, (before, after) => {
      const first = placePods(before, new Map());
      const second = placePods(after, first);
      expect(second.size).toBe(after.length);
      for (const own of Map.groupBy(after, ({ key }) => second.get(key)).values()) {
        const routes = new Map(own.flatMap((one) => one.routes.map(({ key, bytes }) => [key, bytes] as const)));
        expect(own.length).toBeLessThanOrEqual(MAX_EGRESS_SLICE_PODS);
        expect(routes.size).toBeLessThanOrEqual(MAX_EGRESS_SLICE_ROUTES);
        expect([...routes.values()].reduce((sum, bytes) => sum + bytes, 0)).toBeLessThan(0.75 * MIB);
      }
      expect(placePods(after.toReversed(), second)).toEqual(second);
      const rest = after.filter((_, index) => index % 3 > 0);
      for (const [key, place] of placePods(rest, second)) expect(place).toBe(second.get(key));
    }),
  );
});

test('ten times as many pods with large routes of their own cost ten times as much, and not a hundred times', () => {
  const placedOf = (count: number) => {
    const entries = numbers(count).map((number) => entry(`p${number}`, 'a', routesOf(`p${number}-`, 64, 4000)));
    return () => void placePods(entries, placePods(entries, new Map()));
  };
  expect(growthBelow(40, placedOf(200), placedOf(2000))).toBeLessThan(40);
});
