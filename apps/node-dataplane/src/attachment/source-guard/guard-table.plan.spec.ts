import { elementsOf } from '@unbounded/nftables';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planGuardTable, portSets } from './guard-table.plan.ts';
import type { PodPort } from './pod-port.ts';

const port = (interfaceIndex: number): PodPort => ({
  interfaceIndex,
  mac: `02:00:00:00:${(interfaceIndex >> 8).toString(16).padStart(2, '0')}:${(interfaceIndex & 255).toString(16).padStart(2, '0')}`,
  addresses: [`100.65.${interfaceIndex >> 8}.${interfaceIndex & 255}`, `fd64::${interfaceIndex.toString(16)}`],
});
const ports = fc
  .uniqueArray(fc.integer({ min: 2, max: 60_000 }), { maxLength: 20 })
  .map((indexes) => indexes.map(port));

test('rules are the same for any number of pods; the sets are those of each pod together', () => {
  const { chains } = planGuardTable([]);
  fc.assert(
    fc.property(ports, (all) => {
      const table = planGuardTable(all);
      expect(table.chains).toEqual(chains);
      for (const set of table.sets!.filter(({ dynamic }) => !dynamic)) {
        const each = all.flatMap((one) => portSets(one).filter(({ name }) => name === set.name));
        expect(elementsOf(set)).toEqual(each.flatMap(elementsOf));
      }
    }),
  );
});

test('every chain that a rule leads to is there, and ends in a verdict', () => {
  const { chains } = planGuardTable([]);
  const names = new Set(chains.map(({ name }) => name));
  const steps = chains.flatMap(({ rules }) => rules.flatMap(({ expressions }) => expressions));
  const targets = steps.flatMap((step) => ('chain' in step ? [step.chain] : []));
  expect(targets.filter((chain) => chain !== undefined && !names.has(chain))).toEqual([]);
  // A chain without a hook that ended without a verdict would let the frame pass.
  const open = chains
    .filter(({ base, rules }) => !base && !rules.at(-1)!.expressions.every((step) => 'do' in step))
    .map(({ name }) => name);
  expect(open).toEqual([]);
});

test('a pod with addresses of one family has its link-local address besides', () => {
  const sets = portSets({ interfaceIndex: 7, mac: '02:00:00:00:00:0a', addresses: ['100.65.0.7'] });
  expect(sets.map(({ name, elements }) => [name, elements])).toEqual([
    ['ports', ['7']],
    ['macs', ['7 . 02:00:00:00:00:0a']],
    ['ipv4', ['7 . 02:00:00:00:00:0a . 100.65.0.7']],
    ['ipv6', ['7 . 02:00:00:00:00:0a . fe80::ff:fe00:a']],
  ]);
});
