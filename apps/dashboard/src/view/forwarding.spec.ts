import type { Forwarding } from '@unbounded/status';
import { expect, it } from 'vitest';
import { filterForwarding, forwardingRows, urgencyOfEntry, waysText } from './forwarding.ts';

const forwarding: Forwarding = {
  ...{ readTime: '2026-01-01T00:00:00Z', dataplane: 'ebpf', total: 3, different: 2 },
  entries: [
    { table: 'endpoints_v4', key: '100.66.2.0/24', state: 'Missing', wanted: [{ group: 'site s2 IPv4' }] },
    {
      ...{ table: '200', key: '100.65.0.0/16', state: 'Different' },
      wanted: [{ kind: 'geneve', device: 'geneve0', via: '192.0.2.7', mtuBytes: 1280 }],
      present: [],
    },
    { table: '200', key: '100.64.0.0/16', state: 'InSync', wanted: [{}], present: [{}] },
  ],
};

it('says where packets go, and that there is no entry', () => {
  const [missing, different, same] = forwardingRows(forwarding);
  expect([missing, different, same].map((row) => [waysText(row!.wanted), waysText(row!.present)])).toEqual([
    ['group site s2 IPv4', 'nothing'],
    ['geneve by geneve0 via 192.0.2.7, MTU 1280', 'nobody who carries'],
    ['as the kernel finds', 'as the kernel finds'],
  ]);
});

it('finds entries by words of theirs, and those that differ', () => {
  const rows = forwardingRows(forwarding);
  const keys = (filter: Parameters<typeof filterForwarding>[1]) => filterForwarding(rows, filter).map(({ key }) => key);
  expect(keys({ entries: 'geneve0' })).toEqual(['100.65.0.0/16']);
  expect(keys({ differ: 'yes' })).toEqual(['100.66.2.0/24', '100.65.0.0/16']);
  expect(keys({})).toHaveLength(3);
});

it('has another name for each row, also where a node sends one key twice', () => {
  const twice = { ...forwarding, entries: [forwarding.entries[0]!, forwarding.entries[0]!] };
  expect(new Set(forwardingRows(twice).map(({ id }) => id)).size).toBe(2);
});

it('puts what is missing before what is as it should be, and a word of a later version between', () => {
  const states = ['InSync', 'Unknown', 'Unwanted', 'Different', 'Missing'] as const;
  expect(states.toSorted((a, b) => urgencyOfEntry(a) - urgencyOfEntry(b))).toEqual(states.toReversed());
});
