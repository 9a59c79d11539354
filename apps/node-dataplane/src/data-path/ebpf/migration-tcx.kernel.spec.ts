import { describe } from 'vitest';
import { testMigration } from './migration.testdata.ts';

describe('programs attached by tcx', () => {
  testMigration(undefined);
});
