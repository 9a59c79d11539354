import { type ForwardingEntry, parseForwarding } from '@unbounded/status';
import { expect, test } from 'vitest';
import { compareSides, type Side } from './forwarding.diff.ts';
import { forwardingList } from './forwarding-list.ts';

const about = { readTime: '2026-01-01T00:00:00.000Z', dataplane: 'ebpf' } as const;
const side = (device: string, fingerprint = device): Side => ({ ways: [{ device }], fingerprint });
const entry = (key: string, state: ForwardingEntry['state'] = 'InSync'): ForwardingEntry => ({
  ...{ table: 't', key, state },
  wanted: [{ device: 'wg51820' }],
});

test('each entry says what is wanted and what is present', () => {
  const wanted = new Map([
    ['same', side('a')],
    ['other', side('a')],
    ['hidden', side('a', 'with another MAC')],
    ['missing', side('a')],
  ]);
  const present = new Map([
    ['same', side('a')],
    ['other', side('b')],
    ['hidden', side('a')],
    ['unwanted', side('c')],
  ]);
  const [a, b, c] = [[{ device: 'a' }], [{ device: 'b' }], [{ device: 'c' }]];
  expect(compareSides('t', wanted, present)).toEqual([
    { table: 't', key: 'same', state: 'InSync', wanted: a, present: a },
    { table: 't', key: 'other', state: 'Different', wanted: a, present: b },
    { table: 't', key: 'hidden', state: 'Different', wanted: a, present: a },
    { table: 't', key: 'missing', state: 'Missing', wanted: a },
    { table: 't', key: 'unwanted', state: 'Unwanted', present: c },
  ]);
});

test('what differs comes first, then by table and key', () => {
  const all = [entry('c'), entry('b', 'Missing'), entry('a'), { ...entry('d', 'Unwanted'), table: 's' }];
  const list = forwardingList(all, about);
  expect(list.entries.map(({ key }) => key)).toEqual(['d', 'b', 'a', 'c']);
  expect(list).toMatchObject({ ...about, total: 4, different: 2 });
});

test('a list that is cut says of how many, and is what the aggregator takes', () => {
  const many = Array.from({ length: 25_000 }, (_, at) => entry(`k${at}`, at === 24_999 ? 'Missing' : 'InSync'));
  const list = forwardingList(many, about);
  expect([list.total, list.different, list.entries.length]).toEqual([25_000, 1, 20_000]);
  expect(list.entries[0]?.key).toBe('k24999');
  expect(parseForwarding(JSON.parse(JSON.stringify(list)))).toMatchObject({ ok: true });
});

test('a list is cut before it has too many bytes, whatever characters are in it', () => {
  const list = forwardingList(
    Array.from({ length: 1000 }, (_, at) => entry(`é${at}`)),
    about,
    20_000,
  );
  expect(list.entries.length).toBeGreaterThan(100);
  expect(list.entries.length).toBeLessThan(1000);
  expect(Buffer.byteLength(JSON.stringify(list))).toBeLessThanOrEqual(20_000);
});
