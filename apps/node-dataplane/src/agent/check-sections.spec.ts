import { ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { expect, test } from 'vitest';
import { planGuardTable } from '../attachment/source-guard/guard-table.plan.ts';
import { type BaseChain, CONNECTIVITY_CHAINS, GUARD_CHAINS } from '../kernel/base-chains.ts';
import { checkSections, findSectionProblems, type ListedSection } from './check-sections.ts';

const connectivity: ListedSection = {
  name: 'connectivity',
  routeProtocol: ROUTE_PROTOCOL,
  baseChains: Object.values(CONNECTIVITY_CHAINS),
};
const chain = (settings: Partial<BaseChain> = {}): BaseChain => ({
  family: 'inet',
  name: 'marks',
  type: 'filter',
  hook: 'prerouting',
  priority: -151,
  ...settings,
});

test('sections that can be told apart are fine', () => {
  const egress = { name: 'egress', routeProtocol: 118, baseChains: [chain()] };
  expect(findSectionProblems([connectivity, egress, { name: 'l2' }])).toEqual([]);
});

test.each<[string, ListedSection, string]>([
  ['a name twice', { name: 'connectivity' }, 'section name "connectivity" must not be listed twice'],
  ['a name that is no word', { name: 'Static egress' }, 'section name "Static egress" must be lower-case letters'],
  ['the name of the guard’s table', { name: 'pods' }, 'must not be that of the nftables table unbounded_pods'],
  [
    'a protocol of another',
    { name: 'egress', routeProtocol: 117 },
    'routeProtocol 117 must not belong to two sections',
  ],
  ['a protocol of strangers', { name: 'egress', routeProtocol: 4 }, 'routeProtocol 4 must be within 117..124'],
  [
    'a chain where another table has one',
    { name: 'egress', baseChains: [chain({ priority: CONNECTIVITY_CHAINS.sources.priority })] },
    'tables unbounded and unbounded_egress both have a base chain at inet prerouting -290',
  ],
  [
    'a chain where the guard has one',
    { name: 'l2', baseChains: [chain({ family: 'bridge', priority: GUARD_CHAINS.frames.priority })] },
    'tables unbounded_pods and unbounded_l2 both have a base chain at bridge prerouting -300',
  ],
])('%s keeps the agent from starting', (_, other, message) => {
  expect(() => checkSections([connectivity, other])).toThrow(message);
});

test('a section may have several chains at one place', () => {
  const baseChains = [chain(), chain({ name: 'more' })];
  expect(findSectionProblems([connectivity, { name: 'egress', baseChains }])).toEqual([]);
});

test('the base chains of the guard’s table are those of the registry', () => {
  const bases = planGuardTable([]).chains.filter(({ base }) => base);
  expect(bases.map(({ name, base }) => ({ name, hook: base!.hook, priority: base!.priority }))).toEqual(
    Object.values(GUARD_CHAINS).map(({ name, hook, priority }) => ({ name, hook, priority })),
  );
});
