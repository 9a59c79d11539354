import { describe } from 'vitest';
import { testMigration } from './migration.testdata.ts';

/** An odd number, so that agents go on and back in turn. Every step, and what is left of folders: migration.matrix.spec.ts. */
const KILL_EVERY = 11;

describe('programs attached by clsact', () => {
  testMigration('clsact', { killEvery: KILL_EVERY, leftovers: false });
});
