import { expect, test } from 'vitest';
import { type Case, CASES } from './cases.ts';
import { expectCases } from './expectations.ts';
import { layoutOf } from '../../layout/layout.ts';

/** What this machine's kernel may lack: the case with most checks. Two are in fabric-underlay.vm.spec.ts, all in fabric.matrix.spec.ts. */

expectCases(['GENEVE, both families']);

test('every case is a layout that tools/lab up --fabric makes', () => {
  for (const { options } of Object.values<Case>(CASES))
    expect(() => layoutOf({ fabric: true, workers: 1, ip: 'dual', underlay: 'dual', ...options })).not.toThrow();
});
