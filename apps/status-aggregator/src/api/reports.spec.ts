import type { ClientRequest } from 'node:http';
import { request } from 'node:https';
import { gzipSync } from 'node:zlib';

import { expect, test } from 'vitest';

import { ask, report, startTestApi } from './test-api.testdata.ts';

/** A request whose body does not end. */
const dialReport = (port: number): ClientRequest => {
  const headers = { authorization: 'Bearer agent.n1', 'content-length': 100 };
  const path = '/v1alpha1/reports';
  const outgoing = request({
    host: '127.0.0.1',
    port,
    path,
    method: 'POST',
    rejectUnauthorized: false,
    agent: false,
    headers,
  });
  outgoing.on('error', () => {}).write('{');
  return outgoing;
};

const refused = (status: number, reason: string, message: unknown = expect.any(String)) => ({
  status,
  json: { reason, message },
});

test('a report is taken as that of the node of the token, whatever the body says', async () => {
  await using api = await startTestApi();
  expect((await report(api.port, '{"node":"n2"}')).status).toBe(204);
  expect((await report(api.port, gzipSync('{"a":"é"}'), { 'content-encoding': 'gzip' })).status).toBe(204);
  expect(api.accepted).toEqual([
    ['n1', { node: 'n2' }],
    ['n1', { a: 'é' }],
  ]);
  const metrics = await api.metrics.render();
  expect(metrics).toContain('unbounded_status_pushes_total{result="accepted"} 2');
});

test('a difference from a report that is not known is answered with 409, what is no report with 400', async () => {
  await using api = await startTestApi({ intake: { accept: async () => 'resync' } });
  expect(await report(api.port, '{}')).toMatchObject(refused(409, 'ResyncRequired'));
  await using strict = await startTestApi({ parsePush: () => ({ ok: false, error: 'sequence: expected a number' }) });
  expect(await report(strict.port, '{}')).toMatchObject(refused(400, 'InvalidReport', 'sequence: expected a number'));
});

test('without a token of an agent nothing is read: 401 with the scheme', async () => {
  await using api = await startTestApi();
  for (const token of ['nobody', '', 'a b']) {
    const answer = await report(api.port, '{}', {}, token);
    expect(answer).toMatchObject(refused(401, 'Unauthenticated'));
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  }
  expect(await api.metrics.render()).toContain('unbounded_status_rejections_total{reason="Unauthenticated"} 3');
});

const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
const gzipped = { 'content-encoding': 'gzip' };

test.each<[what: string, body: Buffer | string, headers: Record<string, string>, message: string]>([
  ['truncated gzip', gzipSync('{"a":1}').subarray(0, -9), gzipped, 'the gzip stream is truncated'],
  ['no gzip', '{"a":1}', gzipped, 'the gzip stream is invalid: incorrect header check'],
  [
    'garbage after gzip',
    Buffer.concat([gzipSync('{}'), Buffer.from('garbage')]),
    gzipped,
    'there is data after the end of the gzip stream',
  ],
  [
    'zeros after gzip',
    Buffer.concat([gzipSync('{}'), Buffer.alloc(3)]),
    gzipped,
    'there is data after the end of the gzip stream',
  ],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22]), {}, 'the body is not valid UTF-8'],
  ['no JSON', '{"secret":1,}', {}, 'the body is not valid JSON at position 12'],
  ['nothing', '', {}, 'the body is not valid JSON'],
  ['deep JSON', nested(33), {}, 'the JSON nests deeper than 32'],
  ['very deep JSON', gzipSync(nested(1_000_000)), gzipped, 'the JSON nests deeper than 32'],
])('%s is refused with what is wrong', async (_, body, headers, message) => {
  await using api = await startTestApi();
  expect(await report(api.port, body, headers)).toMatchObject(refused(400, 'MalformedBody', message));
  expect((await report(api.port, nested(32))).status).toBe(204);
});

test('other encodings are refused', async () => {
  await using api = await startTestApi();
  for (const encoding of ['br', 'gzip, gzip', 'deflate'])
    expect(await report(api.port, '{}', { 'content-encoding': encoding })).toMatchObject(
      refused(415, 'UnsupportedEncoding'),
    );
});

/** A GiB of zeros, as gzip of 64 members (RFC 1952 2.2). */
const bomb = (): Buffer => {
  const member = gzipSync(Buffer.alloc(1 << 24), { level: 9 });
  return Buffer.concat(Array.from({ length: 64 }, () => member));
};

test('a gzip bomb ends at the bound, and is not held', async () => {
  await using api = await startTestApi();
  const body = bomb();
  expect(body.length).toBeLessThan(1 << 20);
  expect(await report(api.port, body, gzipped)).toMatchObject(
    refused(413, 'TooLarge', 'the decompressed body is larger than 4194304 bytes'),
  );
  const before = process.memoryUsage().rss;
  await Promise.all(Array.from({ length: 8 }, () => report(api.port, body, gzipped)));
  expect(process.memoryUsage().rss - before).toBeLessThan(200e6);
});

test('a body of 100 MB is refused by its length, or at the bound when it tells none', async () => {
  await using api = await startTestApi();
  const ofLength = await ask(api.port, '/v1alpha1/reports', {
    method: 'POST',
    token: 'agent.n1',
    headers: { 'content-length': '100000000' },
    body: '{',
    isOpen: true,
  });
  expect(ofLength).toMatchObject(refused(413, 'TooLarge'));
  const chunked = await ask(api.port, '/v1alpha1/reports', {
    method: 'POST',
    token: 'agent.n1',
    body: Buffer.alloc(1_100_000, 0x20),
    isOpen: true,
  });
  expect(chunked).toMatchObject(refused(413, 'TooLarge', 'the body is larger than 1048576 bytes'));
});

test('clients that leave before they have sent all free their place at once', async () => {
  await using api = await startTestApi({
    bodyLimits: { atOnce: 1 },
    agentAccess: async () => {
      await new Promise((resolve) => setTimeout(resolve, 50));
      return { isGranted: true, value: 'n1' };
    },
  });
  for (const afterMs of [10, 100]) {
    const leaving = dialReport(api.port);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    leaving.destroy();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect((await report(api.port, '{}')).status).toBe(204);
  }
});

test('a slow body ends after its time, and so many are read at once and no more', async () => {
  await using api = await startTestApi({ bodyLimits: { readMs: 300, atOnce: 2 } });
  const slow = { method: 'POST', body: '{"a":', isOpen: true };
  const waiting = ['agent.n2', 'agent.n3'].map((token) => ask(api.port, '/v1alpha1/reports', { ...slow, token }));
  await new Promise((resolve) => setTimeout(resolve, 100));
  const more = await report(api.port, '{}');
  expect(more).toMatchObject(refused(429, 'TooManyBodies'));
  expect(more.headers['retry-after']).toBe('1');
  // One node has one of these places, however many reports it begins.
  expect(await report(api.port, '{}', {}, 'agent.n2')).toMatchObject(refused(429, 'TooManyReports'));
  for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject(refused(408, 'BodyTimeout'));
  expect((await report(api.port, '{}')).status).toBe(204);
});
