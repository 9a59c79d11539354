import { describe } from 'vitest';
import { testMigration } from './migration.testdata.ts';

/** The kernel specs of the same name, with an agent that is killed before each of its steps: some minutes. */

describe('programs attached by tcx', () => {
  testMigration(undefined);
});

describe('programs attached by clsact', () => {
  testMigration('clsact');
});
