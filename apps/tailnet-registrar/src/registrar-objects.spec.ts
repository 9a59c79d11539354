import { expect, test } from 'vitest';

import { ending, recordOf, type Status } from './devices.testdata.ts';
import { stepsPrint } from './registrar-objects.ts';

const BEFORE: Status = { keyID: 'k1', keysGiven: 1 };

const differs = (change: Status, make: typeof ending): boolean =>
  stepsPrint(make(BEFORE)) !== stepsPrint(make({ ...BEFORE, ...change }));
/** Whether a change has a record looked at, and one that ends. */
const concerns = (change: Status) => [differs(change, recordOf), differs(change, ending)];

/** What the agent of the node alone writes. */
const WORDS: readonly Status[] = [
  { message: 'm' },
  { path: 'direct' },
  { name: 'web-0.example.com' },
  { addresses: ['100.64.0.1'] },
];
const WISHES: readonly Status[] = [
  { state: 'NeedsLogin' },
  { reportedID: 'n1' },
  { keyRequest: { publicKey: `${'A'.repeat(43)}=` } },
];
const OURS: readonly Status[] = [{ keyID: 'k2' }, { deviceID: 'n1' }, { keysGiven: 2 }];

test.each(WORDS)('%o has no record looked at', (change) => {
  expect(concerns(change)).toEqual([false, false]);
});

test.each(WISHES)('%o has a record looked at, but none that ends', (change) => {
  expect(concerns(change)).toEqual([true, false]);
});

test.each(OURS)('%o has every record looked at', (change) => {
  expect(concerns(change)).toEqual([true, true]);
});

test('the end of a record has it looked at', () => {
  expect(stepsPrint(recordOf(BEFORE))).not.toBe(stepsPrint(ending(BEFORE)));
});
