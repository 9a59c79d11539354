import assert from 'node:assert/strict';
import { NetlinkDecodeError } from '@unbounded/netlink';
import type { FuzzTarget } from '@unbounded/testing';
import { readBody, readChain, readElements, readRule, readSet, sameInstructions, tableOf } from './observed.codec.ts';
import { createTable, fillTable } from './table.codec.ts';
import type { TableSpec } from './table.ts';

/** Tables as the kernel lists them: others may have put rules and comments of any kind into one. */
const run = (input: Uint8Array): void => {
  try {
    const attributes = readBody(input);
    tableOf(attributes);
    readChain(attributes);
    readSet(attributes);
    readElements(attributes);
    const { instructions } = readRule(attributes);
    assert.ok(sameInstructions(instructions, instructions));
  } catch (error) {
    if (!(error instanceof NetlinkDecodeError)) throw error;
  }
};

const table: TableSpec = {
  family: 'inet',
  name: 't',
  sets: [{ name: 'pods', type: 'ipv4', elements: ['192.0.2.0/24'] }],
  chains: [
    {
      name: 'c',
      base: { type: 'filter', hook: 'forward', priority: 0 },
      rules: [
        {
          comment: 'ours',
          expressions: [
            { match: 'meta', key: 'iifname', op: '==', value: 'cbr0' },
            { match: 'set', field: 'ip.saddr', set: 'pods', op: '==' },
            { verdict: 'drop' },
          ],
        },
      ],
    },
  ],
} as unknown as TableSpec;

export const target: FuzzTarget = {
  run,
  seeds: [createTable(table), fillTable(table)].flat().map(({ body }) => body),
  maxBytes: 512,
};
