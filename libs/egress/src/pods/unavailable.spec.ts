import type { StaticEgressRule } from '@unbounded/crds';
import { parseAddress } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type EgressSnapshot, explain, planEgress } from '../index.ts';
import { anySnapshot } from '../random-egress.testdata.ts';
import { egressPool, node, snapshot, staticEgress } from '../testdata.ts';

/** When pods leave with the address of their node: while nobody owns an address that the rule has, and never else. */

const web = { podSelector: {}, whenUnavailable: 'Node' } as const;
const routesOf = (rule: Partial<StaticEgressRule>, rest: Partial<EgressSnapshot> = {}) =>
  planEgress(snapshot({ rules: [staticEgress([{ ...web, ...rule }])], ...rest }))
    .routedPods.get('uid-p1')!
    .routes.map(({ route }) => route);
const dead = [1, 2, 3].map((number) => node(number, { isAlive: false }));

test.each<[what: string, rule: Partial<StaticEgressRule>, rest?: Partial<EgressSnapshot>]>([
  ['a pool that does not exist', { pool: 'typo' }],
  ['a refused address', { egressip: '192.0.2.1' }],
  ['a cidr that cannot be read', { egressip: '192.0.2.210', cidr: 'nonsense' }],
  ['a pool that is exhausted', { pool: 'public' }, { pools: [egressPool({ blocks: ['192.0.2.1/32'] })] }],
  ['an address of the other family than cidr', { egressip: '192.0.2.210', cidr: '2001:db8:9::/48' }],
])('%s: packets are dropped, whatever whenUnavailable is', (_, rule, rest) => {
  const routes = routesOf(rule, rest);
  expect(routes).toMatchObject([{ whenUnavailable: 'Drop' }]);
  expect(routes[0]!.egress).toBeUndefined();
});

test('a family without an address is dropped, while the other one leaves with the address of the node', () => {
  const rule = { egressip: '192.0.2.210', except: ['198.51.100.0/24'] };
  expect(routesOf(rule, { nodes: dead })).toMatchObject([
    { destinations: ['0.0.0.0/0'], egress: [{ address: '192.0.2.210' }], whenUnavailable: 'Node' },
    { destinations: ['::/0'], except: ['198.51.100.0/24'], whenUnavailable: 'Drop' },
  ]);
  expect(routesOf({ egressips: ['192.0.2.210', '2001:db8::210'] }, { nodes: dead })).toMatchObject([
    { destinations: ['0.0.0.0/0', '::/0'], whenUnavailable: 'Node' },
  ]);
});

test('a pod never has more routes than fit: what is beyond is dropped', () => {
  const rules = Array.from({ length: 2 }, (_, object) =>
    staticEgress(
      Array.from({ length: 32 }, (_, index) => ({
        ...{ ...web, egressip: '192.0.2.210', priority: object * 32 + index },
        except: [`198.51.${object}.${index}/32`, `2001:db8:9:${object}::${index}/128`],
      })),
      { name: `r${object}` },
    ),
  );
  const { routes } = planEgress(snapshot({ rules })).routedPods.get('uid-p1')!;
  expect(routes.length).toBe(64);
  expect(routes.at(-1)!.route.rule).toBe('none: too many rules');
});

test('what is explained is what a node does with the routes it is given', () => {
  const seen = new Set<string>();
  fc.assert(
    fc.property(
      anySnapshot,
      fc.boolean(),
      fc.constantFrom('198.51.100.7', '2001:db8:9::7', '203.0.114.7'),
      (any, isDead, text) => {
        const given = isDead ? { ...any, nodes: any.nodes.map((one) => ({ ...one, isAlive: false })) } : any;
        const plan = planEgress(given);
        const destination = parseAddress(text);
        for (const { routes, pod } of plan.routedPods.values()) {
          const { verdict, rule } = explain({ plan, snapshot: given }, pod, destination);
          const own = routes.filter(({ route }) => route.rule === rule).map(({ route }) => route);
          const isFamily = (one: string): boolean => one.includes(':') === (destination.family === 6);
          const route = own.find(({ destinations }) => destinations.some(isFamily));
          if (!route) continue;
          const hasOwner = (route.egress ?? []).some(({ address, node }) => isFamily(address) && node !== undefined);
          const expected = hasOwner ? 'Egress' : route.whenUnavailable === 'Node' ? 'NodeAddress' : 'Dropped';
          seen.add(expected);
          expect(verdict).toBe(expected);
        }
      },
    ),
  );
  expect(seen.size).toBe(3);
});
