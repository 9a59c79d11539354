import { setTimeout as sleep } from 'node:timers/promises';

import type { Lease, ResourceClient } from '@unbounded/kube';
import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { createElection } from './leader-election.ts';

/** A term of 600 ms: it must be renewed within 400, and is tried every 80. */
const LEASE_MS = 600;

/** A Lease that nobody else wants, whose writes are answered as told: late, or, on a connection that is dead, never. */
const leaseAnswering = (answer: (write: number, signal: AbortSignal) => Promise<void>) => {
  let lease: Lease | undefined;
  let writes = 0;
  const write = async (next: Lease, { signal }: { readonly signal: AbortSignal }): Promise<Lease> => {
    lease = { ...next, metadata: { ...next.metadata, resourceVersion: String(++writes) } };
    await answer(writes, signal);
    return lease;
  };
  const client = { get: async () => lease!, create: write, update: write } as unknown as ResourceClient<Lease>;
  return { client, writes: () => writes };
};

/** Who leads while `during` goes on, as times since the beginning. */
const termsDuring = async (client: ResourceClient<Lease>, during: Promise<void>): Promise<[number, number][]> => {
  const options = { leases: client, namespace: 'n', name: 'l', identity: 'me', leaseDurationMs: LEASE_MS };
  const election = createElection({ ...options, logger: silentLogger });
  const stop = new AbortController();
  const began = performance.now();
  const terms: [number, number][] = [];
  const running = election.run(stop.signal, async (signal) => {
    const from = performance.now() - began;
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    terms.push([from, performance.now() - began]);
  });
  await during;
  stop.abort();
  await running;
  return terms;
};

test('a Lease whose write was answered when its term was over is not led with: another replica may have taken it', async () => {
  // Not even an abort ends the first: as in a process that was suspended meanwhile.
  const { client } = leaseAnswering(async (write) => {
    if (write === 1) await sleep(LEASE_MS);
  });
  const terms = await termsDuring(client, sleep(1500));
  expect(terms).toHaveLength(1);
  expect(terms[0]![0]).toBeGreaterThan(LEASE_MS);
});

test('a renewal that hangs on a dead connection is tried again on another before the term is over', async () => {
  const { client, writes } = leaseAnswering(async (write, signal) => {
    if (write === 3) await sleep(60_000, undefined, { signal });
  });
  const terms = await termsDuring(client, sleep(1500));
  expect(writes()).toBeGreaterThan(4);
  expect(terms).toHaveLength(1);
  expect(terms[0]![1]).toBeGreaterThan(1400);
});
