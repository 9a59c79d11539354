import type { Expression } from '@unbounded/nftables';
import { expect, test } from 'vitest';
import { planFor } from '../../testdata.ts';
import { planFirewall } from './firewall.plan.ts';

const chainOf = (plan: Parameters<typeof planFirewall>[0], name: string) =>
  planFirewall(plan).chains.find((chain) => chain.name === name);
const withGateway = planFor('g1');
const elementsOf = (name: string) => planFirewall(withGateway).sets!.find((set) => set.name === name)?.elements;
const isMark = (expression: Expression): boolean => 'set' in expression && expression.set === 'mark';

test('of 1,000 nodes there is no rule each: they are elements of one set a family', () => {
  const many = Array.from({ length: 1000 }, (_, index) => ({
    prefix: `10.1.${index >> 8}.${index & 255}/32`,
    via: 'anchor' as const,
    mtuBytes: 1420,
  }));
  const rules = (plan: typeof withGateway): number => planFirewall(plan).chains.flatMap((chain) => chain.rules).length;
  expect(rules({ ...withGateway, transitRoutes: many })).toBe(rules(withGateway));
  expect(elementsOf('transit_to_ip')).toEqual(['10.1.0.30/32', '10.1.0.31/32']);
  expect(elementsOf('transit_to_ip6')).toEqual([]);
});

test('the mark is set behind the translation of Services, on nothing but what came out of the overlay', () => {
  const { base, rules: choosing } = chainOf(withGateway, 'transit')!;
  const { rules } = chainOf(withGateway, 'transit_mark')!;
  expect(choosing.every(({ expressions }) => !expressions.some(isMark))).toBe(true);
  expect(base).toMatchObject({ hook: 'prerouting', type: 'filter' });
  expect(base!.priority).toBeGreaterThan(-100);
  const [bridge, others] = rules;
  expect(bridge!.expressions).toEqual([{ match: 'meta', key: 'iifname', op: '==', value: 'cbr0' }, { do: 'return' }]);
  expect(others!.expressions).toEqual([
    { match: 'device', key: 'iifname', op: '!=', set: 'overlay_devices' },
    { do: 'return' },
  ]);
  expect(rules.findIndex(({ expressions }) => expressions.some(isMark))).toBeGreaterThan(1);
});

test('a connection that has the gateway’s own address stays on the LAN', () => {
  const { rules } = chainOf({ ...withGateway, ownAddresses: ['10.1.0.20', 'fd00:1::20'] }, 'transit_mark')!;
  const addresses = rules.flatMap(({ expressions }) =>
    expressions.flatMap((part) => ('match' in part && part.match === 'ct-address' ? [part.value] : [])),
  );
  expect(addresses).toEqual(['10.1.0.20', 'fd00:1::20']);
});

test('answers of Services whose clients came by the LAN are not marked', () => {
  const { rules } = chainOf(withGateway, 'transit_mark')!;
  const answers = rules.findIndex(({ expressions }) =>
    expressions.some((part) => 'match' in part && part.match === 'ct-translated'),
  );
  expect(rules[answers]!.expressions.at(-1)).toEqual({ do: 'return' });
  expect(answers).toBeLessThan(rules.findIndex(({ expressions }) => expressions.some(isMark)));
});

test('the mark goes before the tunnel looks for its way, and what kept it does not leave', () => {
  const { base, rules } = chainOf(withGateway, 'transit_forward')!;
  expect(base).toMatchObject({ hook: 'forward', type: 'filter' });
  const [unmarked, intoTunnel, ...kept] = rules;
  expect(unmarked!.expressions.map((one) => ('op' in one ? one.op : one))).toEqual(['!=', { do: 'return' }]);
  expect(intoTunnel!.expressions).toContainEqual({ set: 'mark', value: 0, mask: 0xf0 });
  for (const { expressions } of kept) expect(expressions.at(-1)).toEqual({ do: 'drop' });
});

test('a node without such routes has none of it', () => {
  for (const plan of [planFor('w1'), { ...withGateway, transitRoutes: [] }]) {
    const { sets = [], chains } = planFirewall(plan);
    expect([...sets, ...chains].filter(({ name }) => name.startsWith('transit'))).toEqual([]);
  }
});
