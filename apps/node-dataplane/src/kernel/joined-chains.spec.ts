import type { ChainSpec } from '@unbounded/nftables';
import { expect, test } from 'vitest';
import { CONNECTIVITY_CHAINS, baseOf } from './base-chains.ts';
import { joinBaseChains } from './joined-chains.ts';

const DROP = [{ expressions: [{ do: 'drop' }] }] as const;
const chain = (name: string, at: keyof typeof CONNECTIVITY_CHAINS): ChainSpec => ({
  name,
  base: baseOf(CONNECTIVITY_CHAINS[at]),
  rules: DROP,
});

test('chains of one place are called from one base chain, in the order in which they are listed', () => {
  const [second, first, input] = joinBaseChains([chain('second', 'tunnelWays'), chain('first', 'icmpErrors')]);
  expect([second, first]).toEqual([
    { name: 'second', rules: DROP },
    { name: 'first', rules: DROP },
  ]);
  expect(input).toEqual({
    name: 'input_mangle',
    base: { type: 'filter', hook: 'input', priority: -150, policy: 'accept' },
    rules: ['second', 'first'].map((name) => ({ expressions: [{ do: 'jump', chain: name }] })),
  });
});

test('a chain that is alone at its place stays a base chain, and one that is only jumped to stays as it is', () => {
  const chains = [{ name: 'called', rules: DROP }, chain('leaving', 'leaving'), chain('boundary', 'boundary')];
  expect(joinBaseChains(chains)).toEqual(chains);
});

test('chains of another type, hook, priority or policy are another place’s', () => {
  const base = baseOf(CONNECTIVITY_CHAINS.leaving);
  const chains = [
    base,
    { ...base, type: 'nat' as const },
    { ...base, hook: 'input' as const },
    { ...base, priority: 1 },
    { ...base, policy: 'drop' as const },
  ].map((each, index): ChainSpec => ({ name: `chain_${index}`, base: each, rules: [] }));
  expect(joinBaseChains(chains)).toEqual(chains);
});

test('a chain that accepts is refused beside others, which would not see the packet', () => {
  const accepting = { ...chain('early', 'boundary'), rules: [{ expressions: [{ do: 'accept' }] }] } as const;
  expect(() => joinBaseChains([accepting, chain('late', 'forward')])).toThrow(
    new RangeError('chain early must end with "return" instead of "accept": others follow at forward_mangle'),
  );
  expect(joinBaseChains([accepting])).toEqual([accepting]);
});
