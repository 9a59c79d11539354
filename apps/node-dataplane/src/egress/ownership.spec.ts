import { expect, test } from 'vitest';
import { createContact } from './ownership.ts';

test('a node owns its addresses while it hears of the API server or of a peer, and no longer', () => {
  let [nowMs, peersMs] = [1000, -Infinity];
  const contact = createContact(() => peersMs, { now: () => nowMs, isolatedMs: 100 });
  expect(contact.isOwner('192.0.2.1')).toBe(false); // it starts without credit
  contact.heard();
  nowMs = 1100;
  expect(contact.isOwner('192.0.2.1')).toBe(false);
  contact.heard();
  expect(contact.isOwner('192.0.2.1')).toBe(true);
  nowMs = 1250;
  peersMs = 1200;
  expect(contact.isOwner('192.0.2.1')).toBe(true);
  nowMs = 1300;
  expect(contact.isOwner('192.0.2.1')).toBe(false);
});
