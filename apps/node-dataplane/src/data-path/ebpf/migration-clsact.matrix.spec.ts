import { describe } from 'vitest';
import { testMigration } from './migration.testdata.ts';

/** Of migration-clsact.kernel.spec.ts, with an agent that is killed before each of its steps: more than a minute. */

describe('programs attached by clsact', () => {
  testMigration('clsact');
});
