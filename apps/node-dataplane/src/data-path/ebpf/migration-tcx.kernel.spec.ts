import { describe } from 'vitest';
import { testMigration } from './migration.testdata.ts';

/** An odd number, so that agents go on and back in turn. Every step: migration.matrix.spec.ts. */
const KILL_EVERY = 7;

describe('programs attached by tcx', () => {
  testMigration(undefined, { killEvery: KILL_EVERY });
});
