import { expect, test } from 'vitest';
import { type Case, type CaseName, CASES } from './fabric-cases.ts';
import { expectCases } from './fabric-expectations.ts';
import { layoutOf } from './layout.ts';

/** What this machine's kernel may lack, a case each; all others are in fabric.matrix.spec.ts. */

const all = Object.entries(CASES) as [CaseName, Case][];

expectCases(all.filter(([, { isBasic }]) => isBasic).map(([name]) => name));

test('every case is a layout that tools/lab up --fabric makes', () => {
  for (const [, { options }] of all)
    expect(() => layoutOf({ fabric: true, workers: 1, ip: 'dual', underlay: 'dual', ...options })).not.toThrow();
});
