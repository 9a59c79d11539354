import { setTimeout as sleep } from 'node:timers/promises';

import { ApiError, type Cluster, TransportError } from '@unbounded/kube';
import { createLogger, createMetrics, silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { edgeMetrics } from '../api/edge-metrics.ts';
import { type AgentAccessOptions, createAgentAccess } from './agent-access.ts';
import { bearerOf, expiryOf } from './bearer.ts';
import { RecentlyUsed } from './recently-used.ts';
import { createReviews, type Identity, type Reviews } from './reviews.ts';
import { ReviewUnavailable } from './verdict.ts';
import { createViewerAccess, type ViewerAccessOptions } from './viewer-access.ts';

const NODE_NAME = 'authentication.kubernetes.io/node-name';
const agentOf = (node?: string, username = 'system:serviceaccount:system:agent'): Identity => ({
  username,
  extra: node === undefined ? {} : { [NODE_NAME]: [node] },
});

/** Answers by hand, and counts. */
const fakeReviews = (identify: (token: string) => Identity | undefined | Promise<Identity | undefined>) => {
  const asked = { tokens: 0, accesses: 0 };
  const world = { identify, mayView: ((): boolean => true) as (identity: Identity) => boolean, isDown: false };
  const reviews: Reviews = {
    identify: async (token) => {
      asked.tokens++;
      if (world.isDown) throw new ReviewUnavailable('ReviewUnavailable');
      return world.identify(token);
    },
    mayViewStatus: async (identity) => {
      asked.accesses++;
      if (world.isDown) throw new ReviewUnavailable('ReviewUnavailable');
      return world.mayView(identity);
    },
  };
  return { reviews, asked, world };
};

const agents = (reviews: Reviews, options: Partial<AgentAccessOptions> = {}) =>
  createAgentAccess({
    reviews,
    account: { namespace: 'system', name: 'agent' },
    now: () => new Date(),
    count: () => {},
    ...options,
  });
const viewers = (reviews: Reviews, options: Partial<ViewerAccessOptions> = {}) =>
  createViewerAccess({ reviews, now: () => new Date(), count: () => {}, ...options });

test.each([
  ['the agent on a node', agentOf('n1'), { isGranted: true, value: 'n1' }],
  ['nobody', undefined, { isGranted: false, status: 401, reason: 'Unauthenticated' }],
  ['another account', agentOf('n1', 'system:serviceaccount:system:other'), { status: 403, reason: 'NotAnAgent' }],
  [
    'the account of another namespace',
    agentOf('n1', 'system:serviceaccount:x:agent'),
    { status: 403, reason: 'NotAnAgent' },
  ],
  ['a token that is bound to no pod', agentOf(), { status: 403, reason: 'NotBoundToNode' }],
])('%s', async (_, identity, verdict) => {
  expect(await agents(fakeReviews(() => identity).reviews)('t')).toMatchObject(verdict);
});

test('a verdict is used for its time, concurrent reviews of one token are one', async () => {
  const { reviews, asked } = fakeReviews((token) => (token === 'good' ? agentOf('n1') : undefined));
  const access = agents(reviews, { limits: { grantedMs: 200, refusedMs: 50 } });
  await Promise.all(Array.from({ length: 10 }, () => access('good')));
  await access('good');
  expect(asked.tokens).toBe(1);
  await access('bad');
  await access('bad');
  expect(asked.tokens).toBe(2);
  await sleep(80);
  await access('bad');
  await access('good');
  expect(asked.tokens).toBe(3);
  await sleep(150);
  await access('good');
  expect(asked.tokens).toBe(4);
});

const jwt = (exp: number): string => `h.${Buffer.from(JSON.stringify({ exp })).toString('base64url')}.s`;

test('no verdict is used past the end of the token, be the API server there or not', async () => {
  let now = new Date(1_000_000);
  const { reviews, asked, world } = fakeReviews(() => agentOf('n1'));
  const access = agents(reviews, { now: () => now });
  await access(jwt(1060));
  now = new Date(1_059_000);
  await access(jwt(1060));
  expect(asked.tokens).toBe(1);
  now = new Date(1_060_000);
  await access(jwt(1060));
  expect(asked.tokens).toBe(2);
  world.isDown = true;
  await expect(access(jwt(1060))).rejects.toThrow(ReviewUnavailable);
});

test('while the API server does not answer, granted tokens go on for a time; others are not refused but unknown', async () => {
  const { reviews, asked, world } = fakeReviews((token) => (token === 'good' ? agentOf('n1') : undefined));
  const access = agents(reviews, { limits: { grantedMs: 10, refusedMs: 10, staleMs: 300, retryMs: 60 } });
  await access('good');
  await access('bad');
  await sleep(20);
  world.isDown = true;
  for (let count = 0; count < 5; count++) expect(await access('good')).toMatchObject({ isGranted: true });
  expect(asked.tokens).toBe(3); // and not again before its time
  await expect(access('bad')).rejects.toThrow(ReviewUnavailable);
  await expect(access('new')).rejects.toThrow(ReviewUnavailable);
  await sleep(300);
  await expect(access('good')).rejects.toThrow(ReviewUnavailable);
  world.isDown = false;
  expect(await access('good')).toMatchObject({ isGranted: true });
});

test('reviews are counted by kind and result, and what a cache answers is none', async () => {
  const metrics = createMetrics();
  const { reviews, world } = fakeReviews((token) => (token === 'good' ? agentOf('n1') : undefined));
  const access = agents(reviews, { count: edgeMetrics(metrics).reviewed });
  for (const token of ['good', 'good', 'bad']) await access(token);
  world.isDown = true;
  await expect(access('new')).rejects.toThrow(ReviewUnavailable);
  const text = await metrics.render();
  for (const result of ['granted', 'refused', 'unavailable'])
    expect(text).toContain(`unbounded_status_token_reviews_total{kind="agent-token",result="${result}"} 1`);
});

test('so many reviews at once and no more', async () => {
  const gate = Promise.withResolvers<Identity>();
  const { reviews } = fakeReviews(() => gate.promise);
  const access = agents(reviews, { limits: { mostInFlight: 2 } });
  const waiting = [access('a'), access('b'), access('a')];
  await expect(access('c')).rejects.toThrow('too many');
  gate.resolve(agentOf('n1'));
  for (const verdict of await Promise.all(waiting)) expect(verdict.isGranted).toBe(true);
  expect(await access('c')).toMatchObject({ isGranted: true });
});

test('whoever was granted before goes on while a crowd of others is reviewed, and is not forgotten for them', async () => {
  const gate = Promise.withResolvers<Identity>();
  const { reviews } = fakeReviews((token) =>
    token === 'known' ? agentOf('n1') : token.startsWith('x') ? undefined : gate.promise,
  );
  const access = agents(reviews, { limits: { mostInFlight: 1, grantedMs: 0, mostEntries: 3 } });
  expect(await access('known')).toMatchObject({ isGranted: true });
  for (const stranger of ['x1', 'x2', 'x3', 'x4']) expect(await access(stranger)).toMatchObject({ isGranted: false });
  const waiting = access('slow');
  expect(await access('known')).toMatchObject({ isGranted: true });
  gate.resolve(agentOf('n2'));
  await waiting;
});

test('permission to view is decided by name, groups and extra together', async () => {
  const identities: Record<string, Identity> = {
    admin: { username: 'anna', groups: ['a', 'ops'] },
    same: { username: 'anna', groups: ['ops', 'a'] },
    less: { username: 'anna', groups: ['a'] },
    scoped: { username: 'anna', groups: ['a', 'ops'], extra: { scopes: ['none'] } },
  };
  const { reviews, asked, world } = fakeReviews((token) => identities[token]);
  world.mayView = ({ groups, extra }) => groups?.includes('ops') === true && extra === undefined;
  const access = viewers(reviews);
  const answers = await Promise.all(['admin', 'less', 'scoped'].map((token) => access(token)));
  expect(answers.map(({ isGranted }) => isGranted)).toEqual([true, false, false]);
  expect(answers[1]).toMatchObject({ status: 403, reason: 'Forbidden' });
  expect(await access('same')).toMatchObject({ isGranted: true, value: { username: 'anna' } });
  expect(asked.accesses).toBe(3);
  expect(await access('nobody')).toMatchObject({ status: 401 });
});

test('what the API server says of a token is neither thrown nor logged', async () => {
  const lines: string[] = [];
  const logger = createLogger({ name: 't', destination: { write: (line) => void lines.push(line) } });
  const failing = (error: Error): Pick<Cluster, 'transport'> =>
    ({ transport: { send: () => Promise.reject(error) } }) as unknown as Cluster;
  for (const error of [new ApiError('POST', 500, { message: 'token s3cret' }), new TransportError('s3cret')]) {
    const reviews = createReviews({ cluster: failing(error), logger });
    const thrown = await reviews.identify('s3cret').catch((reason: unknown) => reason);
    expect(thrown).toBeInstanceOf(ReviewUnavailable);
    expect(String((thrown as Error).stack)).not.toContain('s3cret');
    expect((thrown as Error).cause).toBeUndefined();
  }
  expect(lines).toHaveLength(2);
  expect(lines.join()).not.toContain('s3cret');
});

test('an audience that the API server does not confirm is none', async () => {
  const answering = (status: object): Pick<Cluster, 'transport'> =>
    ({ transport: { send: async () => ({ status }) } }) as unknown as Cluster;
  const identify = (status: object) =>
    createReviews({ cluster: answering(status), logger: silentLogger }).identify('t', ['us']);
  const user = { username: 'anna' };
  expect(await identify({ authenticated: true, user, audiences: ['us'] })).toEqual(user);
  expect(await identify({ authenticated: true, user })).toBeUndefined();
  expect(await identify({ authenticated: true, user, audiences: ['them'] })).toBeUndefined();
  expect(await identify({ authenticated: false, user, audiences: ['us'] })).toBeUndefined();
  expect(await identify({ authenticated: true, audiences: ['us'] })).toBeUndefined();
});

test('bearer tokens are read from the header, and their end from a JWT', () => {
  expect(bearerOf('Bearer abc.def')).toBe('abc.def');
  expect(bearerOf('bearer   abc==')).toBe('abc==');
  for (const header of [undefined, '', 'Bearer', 'Bearer ', 'Basic abc', 'Bearer a b', `Bearer ${'a'.repeat(12_289)}`])
    expect(bearerOf(header)).toBeUndefined();
  expect(expiryOf(jwt(60))).toEqual(new Date(60_000));
  for (const token of ['opaque', 'a.b.c', `a.${Buffer.from('{"exp":"x"}').toString('base64url')}.c`, 'a.bnVsbA.c'])
    expect(expiryOf(token)).toBeUndefined();
});

test('the entry that was used least recently goes first', () => {
  const entries = new RecentlyUsed<number>(2);
  entries.set('a', 1);
  entries.set('b', 2);
  entries.get('a');
  entries.set('c', 3);
  expect([entries.get('a'), entries.get('b'), entries.get('c'), entries.size]).toEqual([1, undefined, 3, 2]);
});
