import fc from 'fast-check';
import { expect, test } from 'vitest';

import type { Client } from './client.ts';
import { type AuthPolicy, Directory, type KeyHash, seededHash } from './directory.ts';
import type { Replica } from './links/replica.ts';

const NOBODY = { registered: () => {}, left: () => {} };
const viewOf = (name: number): DataView => new DataView(new Uint8Array(32).fill(name).buffer);
const clientOf = (isProven: boolean): Client => ({ isProven }) as Client;
const replica = { isReachable: true } as Replica;

const hashes: [string, KeyHash][] = [
  ['of their own', seededHash(7)],
  ['all the same', () => 1],
];

test.each(hashes)('it finds what is in it and nothing else, with hashes %s', (_name, hash) => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 12 }),
    act: fc.constantFrom('claim', 'release', 'there', 'gone'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const directory = new Directory('prefer', hash, NOBODY);
      const here = new Map<number, Client>();
      const there = new Set<number>();
      for (const { key, act } of steps) {
        const entry = directory.findOrAdd(viewOf(key), 0);
        const client = here.get(key) ?? clientOf(false);
        if (act === 'claim' && directory.claim(entry, client, false) !== false) here.set(key, client);
        if (act === 'release' && here.delete(key)) directory.release(entry, client);
        if (act === 'there') {
          there.add(key);
          directory.addReplica(entry, replica, false);
        }
        if (act === 'gone') {
          there.delete(key);
          directory.removeReplica(entry, replica);
        }
        for (let other = 0; other <= 12; other++) {
          const found = directory.find(viewOf(other), 0);
          expect(found?.client).toBe(here.get(other));
          expect(found?.replica !== undefined).toBe(there.has(other));
        }
      }
    }),
    { numRuns: 200 },
  );
});

interface Case {
  readonly policy: AuthPolicy;
  readonly holder: 'none' | 'unproven' | 'proven' | 'proven elsewhere' | 'unproven elsewhere';
  readonly proven: boolean;
  readonly gets: boolean;
}

const cases: readonly Case[] = [
  { policy: 'off', holder: 'proven', proven: false, gets: true },
  { policy: 'off', holder: 'proven elsewhere', proven: false, gets: true },
  { policy: 'prefer', holder: 'none', proven: false, gets: true },
  { policy: 'prefer', holder: 'unproven', proven: false, gets: true },
  { policy: 'prefer', holder: 'proven', proven: false, gets: false },
  { policy: 'prefer', holder: 'proven', proven: true, gets: true },
  { policy: 'prefer', holder: 'proven elsewhere', proven: false, gets: false },
  { policy: 'prefer', holder: 'unproven elsewhere', proven: false, gets: true },
  { policy: 'prefer', holder: 'proven elsewhere', proven: true, gets: true },
  { policy: 'require', holder: 'none', proven: false, gets: false },
  { policy: 'require', holder: 'proven', proven: true, gets: true },
];

test.each(cases)(
  '$policy: held by $holder, asked with a proof: $proven, given: $gets',
  ({ policy, holder, proven, gets }) => {
    const directory = new Directory(policy, seededHash(1), NOBODY);
    const entry = directory.findOrAdd(viewOf(1), 0);
    if (holder.endsWith('elsewhere')) directory.addReplica(entry, replica, holder.startsWith('proven'));
    else if (holder !== 'none') entry.client = clientOf(holder === 'proven');
    const before = entry.client;
    const client = clientOf(proven);
    const displaced = directory.claim(entry, client, proven);
    expect(displaced).toBe(gets ? before : false);
    expect(entry.client).toBe(gets ? client : before);
  },
);
