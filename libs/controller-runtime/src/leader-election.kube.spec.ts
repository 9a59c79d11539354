import { coreClients, type Lease, type ResourceClient } from '@unbounded/kube';
import { silentLogger } from '@unbounded/telemetry';
import { type ApiServer, borrowApiServer, until } from '@unbounded/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';

import { createElection } from './leader-election.ts';

const LEASE_MS = 1500;
/** So long that nobody waits for its end. */
const LONG_LEASE_MS = 15_000;
let api: ApiServer;
let leases: ResourceClient<Lease>;
let names = 0;
const ends: (() => Promise<void>)[] = [];
beforeAll(async () => {
  api = await borrowApiServer();
  leases = coreClients(api.cluster).leases;
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => api?.stop());

/** A replica: whether it leads now, and when its terms began and ended (monotonic ms). */
const replica = (name: string, identity: string, client = leases, leaseDurationMs = LEASE_MS) => {
  const stop = new AbortController();
  const terms: { from: number; to?: number }[] = [];
  const election = createElection({
    leases: client,
    namespace: 'default',
    name,
    identity,
    leaseDurationMs,
    logger: silentLogger,
  });
  const run = election.run(stop.signal, async (signal) => {
    const term: { from: number; to?: number } = { from: performance.now() };
    terms.push(term);
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    term.to = performance.now();
  });
  const end = async (): Promise<void> => {
    stop.abort();
    await run;
  };
  ends.push(end);
  return { election, terms, end };
};
const freshName = () => `test-${++names}`;

test('one leads, the other follows, and takes over at once when the Lease is released', async () => {
  const name = freshName();
  const a = replica(name, 'a', leases, LONG_LEASE_MS);
  await until('a leads', () => a.election.isLeader);
  const b = replica(name, 'b', leases, LONG_LEASE_MS);
  await a.end();
  expect((await leases.get(name, { namespace: 'default' })).spec?.holderIdentity).toBe('');
  await until('b leads', () => b.election.isLeader);
  expect(b.terms[0]!.from - a.terms[0]!.to!).toBeLessThan(LONG_LEASE_MS);
  expect((await leases.get(name, { namespace: 'default' })).spec).toMatchObject({
    holderIdentity: 'b',
    leaseTransitions: 1,
  });
});

/** A client whose writes fail while `isBroken`. */
const breakable = (state: { isBroken: boolean }): ResourceClient<Lease> => {
  const guard =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      if (state.isBroken) throw new Error('no route to the API server');
      return call(...args);
    };
  return {
    ...leases,
    get: guard((...args: Parameters<typeof leases.get>) => leases.get(...args)),
    update: guard((...args: Parameters<typeof leases.update>) => leases.update(...args)),
    create: guard((...args: Parameters<typeof leases.create>) => leases.create(...args)),
  };
};

test('a leader that cannot renew stops before another one starts, and follows again afterwards', async () => {
  const name = freshName();
  const state = { isBroken: false };
  const a = replica(name, 'a', breakable(state));
  await until('a leads', () => a.election.isLeader);
  const b = replica(name, 'b');
  state.isBroken = true;
  await until('b leads', () => b.election.isLeader);
  expect(a.terms[0]!.to).toBeLessThan(b.terms[0]!.from);
  state.isBroken = false;
  await b.end();
  await until('a leads again', () => a.terms.length === 2);
});

test('the leader gives up when someone else has taken the Lease', async () => {
  const name = freshName();
  const a = replica(name, 'a');
  await until('a leads', () => a.election.isLeader);
  const taken = { spec: { holderIdentity: 'intruder', leaseDurationSeconds: 60 } };
  await leases.mergePatch(name, taken, { namespace: 'default' });
  await until('a stopped', () => !a.election.isLeader);
  expect((await leases.get(name, { namespace: 'default' })).spec?.holderIdentity).toBe('intruder');
});

test('of many that start together exactly one leads', async () => {
  const name = freshName();
  const replicas = Array.from({ length: 5 }, (_, index) => replica(name, `r${index}`, leases, LONG_LEASE_MS));
  await until('one leads', () => replicas.some(({ election }) => election.isLeader));
  const before = await leases.get(name, { namespace: 'default' });
  await until('two renewals', async () => {
    const { spec } = await leases.get(name, { namespace: 'default' });
    return spec?.renewTime !== before.spec?.renewTime && spec?.holderIdentity === before.spec?.holderIdentity;
  });
  expect(replicas.filter(({ election }) => election.isLeader)).toHaveLength(1);
});
