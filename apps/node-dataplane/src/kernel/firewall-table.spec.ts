import type { Nftables, TableSpec } from '@unbounded/nftables';
import { createLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { createFirewallTable, type TableFragment } from './firewall-table.ts';

const logger = createLogger({ name: 'test', level: 'fatal' });

/** A kernel that refuses every table with a chain of that name. */
const kernelThatRefuses = (refused?: string, before?: TableSpec) => {
  let table = before;
  const written: string[] = [];
  const chains = (spec: TableSpec): string => spec.chains.map(({ name }) => name).join();
  const nft = {
    readCounters: async () => [],
    hasTable: async () => table !== undefined,
    matches: async (wanted: TableSpec) => JSON.stringify(wanted) === JSON.stringify(table),
    replaceTable: async (wanted: TableSpec) => {
      if (wanted.chains.some(({ name }) => name === refused)) throw new Error('EOPNOTSUPP');
      table = wanted;
      written.push(chains(wanted));
    },
  } as unknown as Nftables;
  return { nft, written, chains: () => table && chains(table), drop: () => (table = undefined) };
};

const fragment = (...names: string[]): TableFragment => ({ chains: names.map((name) => ({ name, rules: [] })) });
const OF_BEFORE: TableSpec = { family: 'inet', name: 'unbounded', ...fragment('first_of_before', 'second_of_before') };

test('fragments stand in one table, in the order of the sections, whichever came first', async () => {
  const { nft, chains } = kernelThatRefuses();
  const table = createFirewallTable({ nft, sections: ['first', 'second'], logger });
  await Promise.all([table.set('second', fragment('second_a')), table.set('first', fragment('first_a'))]);
  await table.set('second', fragment('second_a'));
  expect(chains()).toBe('first_a,second_a');
});

test('a table that is as wanted is not written', async () => {
  const { nft, written } = kernelThatRefuses();
  const table = createFirewallTable({ nft, logger });
  for (let count = 0; count < 3; count++) await table.set('first', fragment('first_a'));
  expect(written).toEqual(['first_a']);
});

test('a fragment that the kernel refuses fails alone, and its former one stays', async () => {
  const { nft, chains } = kernelThatRefuses('second_bad');
  const table = createFirewallTable({ nft, logger });
  await table.set('first', fragment('first_a'));
  await table.set('second', fragment('second_a'));
  expect(await table.set('second', fragment('second_bad'))).toMatchObject({ state: 'outdated' });
  expect(await table.set('first', fragment('first_b'))).toEqual({ state: 'asPlanned' });
  expect(chains()).toBe('first_b,second_a');
});

test('a section that never had a fragment in force has no rules, and says so', async () => {
  const { nft, chains } = kernelThatRefuses('second_bad');
  const table = createFirewallTable({ nft, logger });
  await table.set('first', fragment('first_a'));
  expect(await table.set('second', fragment('second_bad'))).toMatchObject({ state: 'missing' });
  expect(chains()).toBe('first_a');
});

test('while one fragment is refused the table is repaired with what the kernel took', async () => {
  const { nft, chains, drop } = kernelThatRefuses('second_bad');
  const table = createFirewallTable({ nft, logger });
  await table.set('first', fragment('first_a'));
  drop();
  await table.set('second', fragment('second_bad'));
  expect(chains()).toBe('first_a');
});

test('a name of another section is refused', async () => {
  const { nft } = kernelThatRefuses();
  const table = createFirewallTable({ nft, logger });
  await table.set('first', fragment('forward'));
  const { error } = await table.set('second', fragment('forward'));
  expect(error?.message).toBe('"forward" is a name of section first');
});

test('a table of a former process is replaced once, when all sections have set theirs', async () => {
  const { nft, written, chains } = kernelThatRefuses(undefined, OF_BEFORE);
  const table = createFirewallTable({ nft, sections: ['first', 'second'], logger, firstWaitMs: 60_000 });
  const first = table.set('first', fragment('first_a'));
  await new Promise((resolve) => void setImmediate(resolve));
  expect(chains()).toBe('first_of_before,second_of_before');
  table.release('second');
  await first;
  expect(written).toEqual(['first_a']);
});

test('rules of an earlier section that a former process wrote stay until its own are in force', async () => {
  const { nft, chains } = kernelThatRefuses('first_bad', OF_BEFORE);
  const table = createFirewallTable({ nft, sections: ['first', 'second'], logger, firstWaitMs: 0 });
  const outcomes = await Promise.all([
    table.set('first', fragment('first_bad')),
    table.set('second', fragment('second_a')),
  ]);
  expect(outcomes.map(({ state }) => state)).toEqual(['outdated', 'outdated']);
  expect(outcomes[1]?.error?.message).toBe('the rules of section first are not in force yet');
  expect(chains()).toBe('first_of_before,second_of_before');
});
