import { expect, test } from 'vitest';
import { MOST_FORWARDING_ENTRIES, parseForwarding } from './forwarding.ts';

const entry = {
  ...{ table: '252', key: '100.64.0.0/16', state: 'Different' },
  wanted: [{ device: 'wg51820', kind: 'wireguard', mtuBytes: 1420 }],
  present: [{ device: 'eth0', via: '192.0.2.1' }],
};
const answer = { readTime: '2026-01-01T00:00:00Z', dataplane: 'netlink', total: 1, different: 1, entries: [entry] };

test('what an agent answers is read as it is, without members of a later version', () => {
  expect(parseForwarding({ ...answer, later: 1 })).toEqual({ ok: true, value: answer });
});

test('a state of a later version is none that this one knows', () => {
  const read = parseForwarding({ ...answer, entries: [{ ...entry, state: 'Splendid' }] });
  expect(read.ok && read.value.entries[0]?.state).toBe('Unknown');
});

test.each<[object | null, string]>([
  [null, 'the body: null: '],
  [{ ...answer, entries: {} }, 'entries: {}: '],
  [{ ...answer, total: -1 }, 'total: -1: '],
  [{ ...answer, entries: [{ ...entry, key: '' }] }, 'entries.0.key: "": '],
  [{ ...answer, entries: [{ ...entry, wanted: Array.from({ length: 257 }, () => ({})) }] }, 'entries.0.wanted: '],
  [{ ...answer, entries: [{ ...entry, present: [{ via: 'x'.repeat(65) }] }] }, 'entries.0.present.0.via: '],
  [{ ...answer, entries: Array.from({ length: MOST_FORWARDING_ENTRIES + 1 }, () => entry) }, 'entries: '],
])('another document (case %#) is refused with field and value', (input, error) => {
  const read = parseForwarding(input);
  expect(!read.ok && read.error.startsWith(error), JSON.stringify(read).slice(0, 300)).toBe(true);
});
