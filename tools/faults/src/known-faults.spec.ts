import { expect, test } from 'vitest';
import { absentTests } from './known-faults.ts';
import type { Catcher, Fault } from './patch-file.ts';

const faultOf = (...catchers: readonly Catcher[]): Fault => ({
  ...{ id: 'W-05', name: 'W-05-it-is-wrong', says: 'It is wrong.', changed: ['a/b.ts'] },
  catchers,
});
const SPEC = { project: 'unit', file: 'a/b.spec.ts' };

test('a test that a fault names is there by a part of its name, groups included', () => {
  const fault = faultOf({ ...SPEC, test: 'a peer is lost' });
  expect(absentTests([fault], { ...SPEC, names: ['health a peer is lost at once'] })).toEqual([]);
});

test('a test that has another name since is told with the fault', () => {
  const faults = [faultOf({ ...SPEC, test: 'is lost' }, { ...SPEC, test: 'is found' })];
  expect(absentTests(faults, { ...SPEC, names: ['a peer is found'] })).toEqual([
    'fault W-05-it-is-wrong is caught by a test that is not there: "is lost"',
  ]);
});

test('tests of other files and layers are not looked for', () => {
  const faults = [
    faultOf({ ...SPEC, file: 'c.spec.ts', test: 'is lost' }),
    faultOf({ ...SPEC, project: 'kernel', test: 'x' }),
  ];
  expect(absentTests(faults, { ...SPEC, names: [] })).toEqual([]);
});
