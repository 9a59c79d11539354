import { gunzipSync } from 'node:zlib';

import { ReviewUnavailable } from '../access/verdict.ts';
import type { ClusterView } from '@unbounded/status';
import { until } from '@unbounded/testing';
import { ask, denied, dialStream, makeCertificate, startTestApi, testCertificate } from './test-api.testdata.ts';
import { connect } from 'node:tls';
import { once } from 'node:events';
import { expect, test } from 'vitest';

const token = 'viewer.anna';

test('the view is there once it has been composed, and by its position', async () => {
  await using api = await startTestApi();
  const early = await ask(api.port, '/v1alpha1/view', { token });
  expect(early).toMatchObject({ status: 503, json: { reason: 'NotYetComposed' } });
  api.view.push({ text: 'x'.repeat(5000) });
  const plain = await ask(api.port, '/v1alpha1/view', { token });
  expect(plain).toMatchObject({ status: 200, json: { position: '1', view: { text: 'x'.repeat(5000) } } });
  const packed = await ask(api.port, '/v1alpha1/view', { token, headers: { 'accept-encoding': 'gzip' } });
  expect(packed.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(packed.body)).toEqual(plain.body);
  const etag = String(plain.headers['etag']);
  const again = { token, headers: { 'if-none-match': `"other", ${etag}` } };
  expect(await ask(api.port, '/v1alpha1/view', again)).toMatchObject({ status: 304, body: Buffer.alloc(0) });
  api.view.push({ more: 1 });
  expect(await ask(api.port, '/v1alpha1/view', again)).toMatchObject({ status: 200, json: { position: '2' } });
});

test('a node tells what it reported last, an unknown one 404, what is no name 400', async () => {
  await using api = await startTestApi();
  const node = (name: string) => ask(api.port, `/v1alpha1/nodes/${name}`, { token });
  expect(await node('n1')).toMatchObject({ status: 200, json: { report: { name: 'n1' }, ageMs: 5 } });
  expect(await node('n2')).toMatchObject({
    status: 404,
    json: { reason: 'NodeUnknown', message: 'node n2 has not reported' },
  });
  for (const name of ['N1', '-a', 'a..b', 'a'.repeat(254), '%2e%2e', 'a%2Fb'])
    expect(await node(name)).toMatchObject({ status: 400, json: { reason: 'InvalidName' } });
  expect(await node('%ff')).toMatchObject({ status: 400, json: { reason: 'BadRequest' } });
});

test('several nodes are asked for at once: those that have reported, as one alone', async () => {
  await using api = await startTestApi();
  const nodes = (query: string) => ask(api.port, `/v1alpha1/nodes${query}`, { token });
  expect(await nodes('?names=n1,n2')).toMatchObject({
    status: 200,
    json: { nodes: { n1: { report: { name: 'n1' }, ageMs: 5 } }, left: [] },
  });
  expect((await nodes('?names=n2')).json).toEqual({ nodes: {}, left: [] });
  for (const query of ['', '?names=', '?names=n1,', '?names=n1&names=n2', '?names[0]=n1', '?names[__proto__]=n1'])
    expect(await nodes(query), query).toMatchObject({ status: 400, json: { reason: 'InvalidName' } });
});

test('who may not see the status is refused, and nobody while the API server does not answer', async () => {
  let answer: typeof denied | Error = denied;
  await using api = await startTestApi({
    viewerAccess: async () => {
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  for (const path of ['/v1alpha1/view', '/v1alpha1/nodes/n1', '/v1alpha1/nodes?names=n1']) {
    expect(await ask(api.port, path)).toMatchObject({ status: 401, headers: { 'www-authenticate': 'Bearer' } });
    expect(await ask(api.port, path, { token })).toMatchObject({ status: 403, json: { reason: 'Forbidden' } });
  }
  answer = new ReviewUnavailable('ReviewUnavailable');
  const unavailable = await ask(api.port, '/v1alpha1/view', { token });
  expect(unavailable).toMatchObject({
    status: 503,
    json: { reason: 'ReviewUnavailable' },
    headers: { 'retry-after': '5' },
  });
  answer = new Error('secret of the program');
  const failed = await ask(api.port, '/v1alpha1/view', { token });
  expect(failed).toMatchObject({ status: 500, json: { reason: 'InternalError', message: 'internal error' } });
});

test('every answer has the headers that keep browsers from guessing and caching', async () => {
  await using api = await startTestApi();
  for (const path of ['/v1alpha1/nodes/n1', '/v1alpha1/view', '/v1alpha1/nothing']) {
    const { headers } = await ask(api.port, path, { token });
    expect(headers).toMatchObject({
      'content-security-policy': "default-src 'self'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
    });
    expect(headers).not.toHaveProperty('x-powered-by');
  }
  expect(await ask(api.port, '/nothing')).toMatchObject({ status: 404, json: { reason: 'NotFound' } });
});

test('the OpenAPI document has every route, with the schemas that it is given', async () => {
  await using api = await startTestApi();
  const { json } = await ask(api.port, '/openapi.json');
  expect(json).toMatchObject({
    paths: {
      '/v1alpha1/reports': {
        post: { requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Push' } } } } },
      },
      '/v1alpha1/view': { get: {} },
      '/v1alpha1/nodes': { get: { parameters: [{ name: 'names', in: 'query', explode: false }] } },
      '/v1alpha1/nodes/{name}': { get: {} },
    },
    components: { schemas: { Push: { type: 'object' }, NodeReport: {}, ClusterView: {} } },
  });
});

const subjectAt = async (port: number, maxVersion: 'TLSv1.3' | 'TLSv1.1' = 'TLSv1.3'): Promise<string> => {
  const socket = connect({
    port,
    host: '127.0.0.1',
    rejectUnauthorized: false,
    minVersion: 'TLSv1',
    maxVersion,
    ciphers: 'DEFAULT@SECLEVEL=0',
  });
  await once(socket, 'secureConnect');
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return CN;
};

test('another certificate is served from the next connection on, one that is none never, TLS 1.1 not at all', async () => {
  let certificate = testCertificate();
  await using api = await startTestApi({ certificate: () => certificate, addresses: ['127.0.0.1', '127.0.0.2'] });
  expect(await subjectAt(api.port)).toBe('localhost');
  certificate = makeCertificate('second');
  expect(await subjectAt(api.port)).toBe('second');
  certificate = { cert: 'none', key: 'none' };
  expect(await subjectAt(api.port)).toBe('second');
  await expect(subjectAt(api.port, 'TLSv1.1')).rejects.toThrow('alert protocol version');
  const elsewhere = connect({ port: api.port, host: '127.0.0.2', rejectUnauthorized: false });
  await once(elsewhere, 'secureConnect');
  elsewhere.destroy();
});

test('what is to be known of this replica is told beside the view, and makes another answer of the same position', async () => {
  let notices: readonly string[] = [];
  const view = {
    current: () => ({ position: 'h-3', view: { summary: {} } as unknown as ClusterView }),
    since: () => undefined,
    subscribe: () => ({ [Symbol.dispose]: () => {} }),
    notices: () => notices,
  };
  await using api = await startTestApi({ view });
  const plain = await ask(api.port, '/v1alpha1/view', { token });
  expect(plain.json).toEqual({ position: 'h-3', view: { summary: {} } });
  const again = { token, headers: { 'if-none-match': String(plain.headers['etag']) } };
  expect(await ask(api.port, '/v1alpha1/view', again)).toMatchObject({ status: 304 });
  notices = ['Redis is away'];
  expect(await ask(api.port, '/v1alpha1/view', again)).toMatchObject({
    status: 200,
    json: { position: 'h-3', view: { summary: {} }, notices },
  });
  using client = dialStream(api.port, { token });
  await until('the view, without them', () => client.messages[0]);
  expect(client.messages).toEqual([{ type: 'view', position: 'h-3', view: { summary: {} } }]);
});
