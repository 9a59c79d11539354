import { expect, test } from 'vitest';
import { withRuns } from './property-runs.ts';

test.each(['fc', '* as fc'])(
  'stated numbers of cases are multiplied, and so are fast-check’s own and the time of a test (import %s)',
  (name) => {
    const head = `import ${name} from 'fast-check';`;
    const spec = `${head}\nfc.assert(p, { numRuns: 2_000 });\nfc.assert(q);\n}, 120_000);\n`;
    expect(withRuns(spec, 3)).toBe(
      `${head} fc.configureGlobal({ numRuns: 300 });\nfc.assert(p, { numRuns: 6000 });\nfc.assert(q);\n}, 360000);\n`,
    );
  },
);

test('a spec without properties stays as it is', () => {
  expect(withRuns("test('x', () => {});\n", 3)).toBe("test('x', () => {});\n");
});
