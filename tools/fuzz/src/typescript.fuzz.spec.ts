import { testHarnesses } from './harnesses.testdata.ts';

testHarnesses('typescript');
