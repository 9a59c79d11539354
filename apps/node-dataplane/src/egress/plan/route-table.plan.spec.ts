import { containsAddress, parseAddress, parsePrefix } from '@unbounded/ip';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { PodRoute } from './egress-plan.ts';
import { planRouteTable, type TablePlace, type TableRoute, type TableWay } from './route-table.plan.ts';

const route = (more: Partial<PodRoute>): PodRoute => ({
  rule: 'StaticEgressIP/shop/web/0',
  destinations: ['0.0.0.0/0', '::/0'],
  except: [],
  egress: [{ address: '192.0.2.1', owner: 'n2' }],
  unavailable: 'drop',
  ...more,
});

const at = (node: string): TablePlace => ({ node, addresses: [] });

test('every table has a route for everything', () => {
  expect(planRouteTable('ip', [], at('n1'))).toEqual([{ prefix: '0.0.0.0/0', via: 'main' }]);
  expect(planRouteTable('ip6', [route({})], at('n1'))).toEqual([{ prefix: '::/0', via: 'nowhere' }]);
  expect(planRouteTable('ip', [route({})], at('n1'))).toEqual([{ prefix: '0.0.0.0/0', via: { owner: 'n2' } }]);
  expect(planRouteTable('ip', [route({})], at('n2'))).toEqual([{ prefix: '0.0.0.0/0', via: 'main' }]);
});

test('what the node owns leaves by the router of its address, if that has one', () => {
  const nextHop = { router: '192.0.2.254', device: 'eth1' };
  const addresses = [{ address: '192.0.2.1', device: 'eth1', nextHop }];
  expect(planRouteTable('ip', [route({})], { node: 'n2', addresses })).toEqual([{ prefix: '0.0.0.0/0', via: nextHop }]);
});

test('an exception inside of destinations is a route of its own, and what it excepts from it, too', () => {
  const routes = [
    route({ destinations: ['198.51.100.0/24'], egress: [{ address: '192.0.2.2', owner: 'n3' }] }),
    route({ except: ['198.51.0.0/16'] }),
  ];
  expect(planRouteTable('ip', routes, at('n1'))).toEqual([
    { prefix: '0.0.0.0/0', via: { owner: 'n2' } },
    { prefix: '198.51.100.0/24', via: { owner: 'n3' } },
    { prefix: '198.51.0.0/16', via: 'main' },
  ]);
});

/** Few prefixes, nested in one another. */
const prefix = fc.constantFrom('0.0.0.0/0', '10.0.0.0/8', '10.1.0.0/16', '10.1.2.0/24', '10.1.2.128/25', '10.9.0.0/16');
const routes = fc.array(
  fc.record({
    destinations: fc.array(prefix, { minLength: 1, maxLength: 2 }),
    except: fc.array(prefix, { maxLength: 3 }),
    egress: fc.constantFrom([], [{ address: '192.0.2.1', owner: 'n1' }], [{ address: '192.0.2.2', owner: 'n2' }]),
    unavailable: fc.constantFrom('drop' as const, 'pass' as const),
  }),
  { maxLength: 6 },
);
const address = fc.constantFrom('10.1.2.129', '10.1.2.1', '10.1.3.1', '10.2.0.1', '10.9.1.1', '192.0.2.77');

const longest = (table: readonly TableRoute[], of: string): TableWay => {
  const holding = table.filter((one) => containsAddress(parsePrefix(one.prefix), parseAddress(of)));
  return holding.toSorted((a, b) => parsePrefix(b.prefix).length - parsePrefix(a.prefix).length)[0]!.via;
};
const first = (all: readonly PodRoute[], of: string): TableWay => {
  const holds = (texts: readonly string[]): boolean =>
    texts.some((text) => containsAddress(parsePrefix(text), parseAddress(of)));
  const found = all.find(({ destinations, except }) => holds(destinations) && !holds(except));
  const owner = found?.egress[0]?.owner;
  if (!found || owner === 'n1') return 'main';
  return owner === undefined ? (found.unavailable === 'drop' ? 'nowhere' : 'main') : { owner };
};

test('the longest match of the table is the first match of the routes', () => {
  fc.assert(
    fc.property(routes, address, (some, of) => {
      const all = some.map(route);
      expect(longest(planRouteTable('ip', all, at('n1')), of)).toEqual(first(all, of));
    }),
  );
});
