import { setTimeout as sleep } from 'node:timers/promises';

import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { ReviewUnavailable, type Verdict } from '../access/verdict.ts';
import type { Viewer } from '../access/viewer-access.ts';
import type { ClusterView } from '@unbounded/status';
import type { ViewUpdate } from '../intake.port.ts';
import { denied, dialStream, startTestApi, unauthenticated } from './test-api.testdata.ts';

const token = 'viewer.anna';
const of = (user: number) => ({ token: `viewer.user${user}` });

test('a client has the view first, then every update', async () => {
  await using api = await startTestApi();
  using early = dialStream(api.port, { token });
  expect(await early.outcome).toBe('open');
  api.view.push({ a: 1 });
  api.view.push({ b: 2 });
  using late = dialStream(api.port, { token });
  await until('both are there', () => early.messages.length === 2 && late.messages.length === 1);
  expect(early.messages).toEqual([
    { type: 'view', position: '1', view: { a: 1 } },
    { type: 'update', position: '2', patch: { b: 2 } },
  ]);
  expect(late.messages).toEqual([{ type: 'view', position: '2', view: { a: 1, b: 2 } }]);
});

test('clients are told what hinders the aggregator, and that it does no more, wherever they are', async () => {
  await using api = await startTestApi({ streamLimits: { tickMs: 20 } });
  api.view.push({ a: 1 });
  using early = dialStream(api.port, { token });
  await until('the view is there', () => early.messages.length === 1);
  api.view.hinder(['Redis is away']);
  await until('it is told', () => early.messages.length === 2);
  using late = dialStream(api.port, { token });
  using back = dialStream(api.port, { token, query: '?position=1' });
  await until('both are told', () => late.messages.length === 2 && back.messages.length === 1);
  api.view.hinder([]);
  await until('all are told', () => [early, late, back].every(({ messages }) => messages.at(-1)?.type === 'notices'));
  await until('nothing hinders it', () => back.messages.length === 2);
  const types = ({ messages }: typeof early) => messages.map(({ type }) => type);
  expect([types(early), types(late), types(back)]).toEqual([
    ['view', 'notices', 'notices'],
    ['view', 'notices', 'notices'],
    ['notices', 'notices'],
  ]);
  expect(back.messages).toMatchObject([{ notices: ['Redis is away'] }, { notices: [] }]);
});

test('a client that says its position has what it missed, or the view when that is not known', async () => {
  await using api = await startTestApi();
  for (const count of [1, 2, 3]) api.view.push({ count });
  using known = dialStream(api.port, { token, query: '?position=1' });
  using unknown = dialStream(api.port, { token, query: '?position=other-history' });
  using recent = dialStream(api.port, { token, query: '?position=3' });
  await Promise.all([known.outcome, unknown.outcome, recent.outcome]);
  api.view.push({ count: 4 });
  await until('all are there', () =>
    [known, unknown, recent].every(({ messages }) => messages.at(-1)?.position === '4'),
  );
  const positions = (client: typeof known) => client.messages.map(({ type, position }) => `${type} ${position}`);
  expect(positions(known)).toEqual(['update 2', 'update 3', 'update 4']);
  expect(positions(unknown)).toEqual(['view 3', 'update 4']);
  expect(positions(recent)).toEqual(['update 4']);
});

const encoded = (text: string): string =>
  `base64url.bearer.authorization.k8s.io.${Buffer.from(text).toString('base64url')}`;

test('a token among the subprotocols is taken, and never echoed', async () => {
  await using api = await startTestApi();
  using client = dialStream(api.port, { protocols: [encoded(token), 'v1.status.unbounded'] });
  expect(await client.outcome).toBe('open');
  expect(client.socket.protocol).toBe('v1.status.unbounded');
  using without = dialStream(api.port, { protocols: [encoded(token)] });
  expect(await without.outcome).toMatchObject({ status: 400 });
  using bad = dialStream(api.port, { protocols: ['v1.status.unbounded', encoded('nobody')] });
  const refusal = await bad.outcome;
  expect(refusal).toEqual({ status: 401, body: '{"reason":"Unauthenticated","message":"no"}' });
});

test('upgrades without a token, without permission, or from pages of other sites are refused', async () => {
  await using api = await startTestApi();
  using nobody = dialStream(api.port);
  expect(await nobody.outcome).toMatchObject({ status: 401 });
  for (const origin of ['https://evil.example', 'null', `https://127.0.0.1:${api.port + 1}`]) {
    using foreign = dialStream(api.port, { token, headers: { origin } });
    expect(await foreign.outcome).toMatchObject({
      status: 403,
      body: expect.stringContaining('ForeignOrigin') as string,
    });
  }
  using own = dialStream(api.port, { token, headers: { origin: `https://127.0.0.1:${api.port}` } });
  expect(await own.outcome).toBe('open');
  await using strict = await startTestApi({ viewerAccess: async () => denied });
  using other = dialStream(strict.port, { token });
  expect(await other.outcome).toMatchObject({ status: 403 });
  await using silent = await startTestApi({
    viewerAccess: () => Promise.reject(new ReviewUnavailable('ReviewUnavailable')),
  });
  using waiting = dialStream(silent.port, { token });
  expect(await waiting.outcome).toMatchObject({ status: 503 });
  expect(await api.metrics.render()).toContain('unbounded_status_rejections_total{reason="ForeignOrigin"} 3');
});

test('so many clients of one user and of all; a place is free again when its connection has closed', async () => {
  await using api = await startTestApi({ streamLimits: { clients: 3, clientsOfUser: 2 } });
  const clients = [of(1), of(1), of(2)].map((options) => dialStream(api.port, options));
  using third = dialStream(api.port, of(1));
  await Promise.all(clients.map(({ outcome }) => outcome));
  using beyond = dialStream(api.port, of(3));
  expect(await beyond.outcome).toMatchObject({ status: 503 });
  const outcomes = await Promise.all([...clients, third].map(({ outcome }) => outcome));
  expect(outcomes.filter((outcome) => outcome === 'open')).toHaveLength(3);
  for (const { socket } of [...clients, third]) socket.terminate();
  await until('a place is free', async () => {
    using next = dialStream(api.port, of(1));
    return (await next.outcome) === 'open';
  });
});

test('a client that talks is closed', async () => {
  await using api = await startTestApi();
  using long = dialStream(api.port, { token });
  await long.outcome;
  long.socket.send('x'.repeat(1025));
  expect(await long.closed).toBe(1008);
  using often = dialStream(api.port, { token });
  await often.outcome;
  for (let count = 0; count < 11; count++) often.socket.send('x');
  expect(await often.closed).toBe(1008);
  using huge = dialStream(api.port, { token });
  await huge.outcome;
  huge.socket.send(Buffer.alloc(1 << 20));
  expect(await huge.closed).toBe(1009);
  await until('all are counted', async () => (await api.metrics.render()).includes('{reason="policy"} 2'));
});

test('a client that does not read is terminated, while 50 others get every update', async () => {
  await using api = await startTestApi({ streamLimits: { clientsOfUser: 60 } });
  api.view.push({ first: 0 });
  const readers = Array.from({ length: 50 }, () => dialStream(api.port, { token }));
  using sleeper = dialStream(api.port, { token });
  await Promise.all([...readers, sleeper].map(({ outcome }) => outcome));
  sleeper.socket.pause();
  const text = 'x'.repeat(200_000);
  const updates = 60;
  for (let count = 1; count <= updates; count++) {
    api.view.push({ count, text });
    await until('readers have it', () => readers.every(({ messages }) => messages.length === count + 1));
  }
  expect(await api.metrics.render()).toContain('unbounded_status_client_disconnects_total{reason="slow"} 1');
  for (const { messages, socket } of readers) {
    expect(messages.map(({ position }) => position)).toEqual(
      Array.from({ length: updates + 1 }, (_, at) => String(at + 1)),
    );
    socket.terminate();
  }
}, 60_000);

test('a view larger than the bound does not end its client, and one that takes nothing of it ends after a time', async () => {
  await using api = await startTestApi({ streamLimits: { tickMs: 20, stallMs: 400 } });
  api.view.push({ text: 'x'.repeat(24 << 20) });
  using reader = dialStream(api.port, { token });
  using sleeper = dialStream(api.port, { token });
  sleeper.socket.once('upgrade', () => sleeper.socket.pause());
  await sleeper.outcome;
  sleeper.socket.pause();
  api.view.push({ more: 1 });
  await until('the reader has both', () => reader.messages.at(-1)?.position === '2');
  await until('the sleeper is ended', async () => (await api.metrics.render()).includes('{reason="slow"} 1'));
  expect(reader.socket.readyState).toBe(reader.socket.OPEN);
});

test('a stop of the program itself, with its clients in the middle of a view, ends none of them', async () => {
  await using api = await startTestApi({ streamLimits: { tickMs: 20, stallMs: 200, pingMs: 30, pongMs: 200 } });
  api.view.push({ text: 'x'.repeat(24 << 20) });
  using reader = dialStream(api.port, { token });
  await reader.outcome;
  for (let stop = 0; stop < 3; stop++) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500);
    await new Promise(setImmediate);
  }
  api.view.push({ more: 1 });
  await until('the reader has both', () => reader.messages.at(-1)?.position === '2');
  expect(reader.socket.readyState).toBe(reader.socket.OPEN);
});

test('a client that answers no ping is terminated', async () => {
  await using api = await startTestApi({ streamLimits: { tickMs: 10, pingMs: 50, pongMs: 300 } });
  using alive = dialStream(api.port, { token });
  using dead = dialStream(api.port, { token, autoPong: false });
  await Promise.all([alive.outcome, dead.outcome]);
  expect(await dead.closed).toBe(1006);
  await sleep(300);
  expect(alive.socket.readyState).toBe(alive.socket.OPEN);
  expect(await api.metrics.render()).toContain('unbounded_status_client_disconnects_total{reason="ping-timeout"} 1');
});

test('permission is reviewed again: lost, it closes with 4403, the token refused 4401, unanswered 1013', async () => {
  let answer: () => Promise<Verdict<Viewer>> = async () => ({ isGranted: true, value: { username: 'anna' } });
  await using api = await startTestApi({ viewerAccess: () => answer(), streamLimits: { tickMs: 10, recheckMs: 50 } });
  const granted = answer;
  for (const [next, code] of [
    [async () => denied, 4403],
    [async () => unauthenticated, 4401],
    [() => Promise.reject(new ReviewUnavailable('ReviewUnavailable')), 1013],
  ] as const) {
    answer = granted;
    using client = dialStream(api.port, { token });
    expect(await client.outcome).toBe('open');
    await sleep(120);
    answer = () => Promise.reject(new ReviewUnavailable('TooManyReviews'));
    await sleep(120);
    expect(client.socket.readyState).toBe(client.socket.OPEN);
    answer = next;
    expect(await client.closed).toBe(code);
  }
});

test('the end of a token closes its client with 4401', async () => {
  let now = new Date('2026-01-01T00:00:00Z');
  const value = { username: 'anna', expiresAt: new Date('2026-01-01T00:10:00Z') };
  await using api = await startTestApi({
    now: () => now,
    viewerAccess: async () => ({ isGranted: true, value }),
    streamLimits: { tickMs: 10 },
  });
  using client = dialStream(api.port, { token });
  await client.outcome;
  await sleep(50);
  expect(client.socket.readyState).toBe(client.socket.OPEN);
  now = value.expiresAt;
  expect(await client.closed).toBe(4401);
});

test('at the end of the program clients are told, and one that does not listen is cut', async () => {
  const api = await startTestApi({ streamLimits: { closeMs: 300 } });
  using client = dialStream(api.port, { token });
  using deaf = dialStream(api.port, { token });
  await Promise.all([client.outcome, deaf.outcome]);
  deaf.socket.pause();
  await api.part.stop();
  expect(await client.closed).toBe(1001);
  expect(await api.metrics.render()).toContain('unbounded_status_client_disconnects_total{reason="shutdown"} 2');
});

test('a view that does not follow from the one before is sent whole, to whoever has not had it already', async () => {
  let current = { position: 'h-2', view: { summary: { nodes: 2 } } as unknown as ClusterView };
  const told = new Set<(update: ViewUpdate) => void>();
  const tell = (position: string, nodes: number, patch: unknown): void => {
    current = { position, view: { summary: { nodes } } as unknown as ClusterView };
    for (const one of told) one({ position, patch });
  };
  await using api = await startTestApi({
    view: {
      current: () => current,
      // Of a replica that is behind: who was further on is sent nothing for now.
      since: (position) => (position === 'h-4' ? [] : undefined),
      subscribe: (onUpdate) => {
        told.add(onUpdate);
        return { [Symbol.dispose]: () => void told.delete(onUpdate) };
      },
    },
  });
  using client = dialStream(api.port, { token: 'viewer.anna' });
  using ahead = dialStream(api.port, { token: 'viewer.anna', query: '?position=h-4' });
  await until('the view', () => client.messages[0]);
  expect(await ahead.outcome).toBe('open');
  tell('h-3', 3, { summary: { nodes: 3 } });
  tell('h-4', 4, { summary: { nodes: 4 } });
  tell('h-5', 5, { summary: { nodes: 5 } });
  tell('g-1', 6, undefined);
  tell('g-2', 7, { summary: { nodes: 7 } });
  await until('both have the last', () => [client, ahead].every(({ messages }) => messages.at(-1)?.position === 'g-2'));
  const of = ({ messages }: typeof client) => messages.map(({ type, position }) => `${type} ${position}`);
  expect(of(client)).toEqual(['view h-2', 'update h-3', 'update h-4', 'update h-5', 'view g-1', 'update g-2']);
  expect(of(ahead)).toEqual(['update h-5', 'view g-1', 'update g-2']);
});
