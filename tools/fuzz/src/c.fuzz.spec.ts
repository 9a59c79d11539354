import { testHarnesses } from './harnesses.testdata.ts';

/** Apart from those of TypeScript, so that both run at a time. */
testHarnesses('c');
