import { gzipSync } from 'node:zlib';

import type { NodeReport } from '@unbounded/status';
import { expect, test } from 'vitest';

import { forwardingOf } from '../forwarding/forwarding.testdata.ts';
import type { ForwardingExchange } from '../intake.port.ts';
import { ask, denied, report, startTestApi } from './test-api.testdata.ts';

const token = 'viewer.anna';
const refused = (status: number, reason: string, message: unknown = expect.any(String)) => ({
  status,
  json: { reason, message },
});

const wanted = (port: number, node = 'n1') => ask(port, `/v1alpha1/nodes/${node}/forwarding`, { token });
const answer = (port: number, body: Buffer | string, from = 'agent.n1', headers: Record<string, string> = {}) =>
  ask(port, '/v1alpha1/reports/forwarding', { method: 'POST', token: from, body, headers });
const text = JSON.stringify(forwardingOf());

test('a viewer is told to come back, the agent is asked with its push and answers, and the viewer has the answer', async () => {
  await using api = await startTestApi();
  expect((await report(api.port, '{}')).headers).not.toHaveProperty('unbounded-wants');
  const first = await wanted(api.port);
  expect(first).toMatchObject({ status: 202, json: { reason: 'Requested' }, headers: { 'retry-after': '1' } });
  const pushed = await report(api.port, '{}');
  expect(pushed).toMatchObject({ status: 204, headers: { 'unbounded-wants': 'forwarding' } });
  expect(pushed.body).toHaveLength(0); // an earlier agent takes 204 alone for success
  expect((await report(api.port, '{}', {}, 'agent.n2')).headers).not.toHaveProperty('unbounded-wants');
  expect((await answer(api.port, gzipSync(text), 'agent.n1', { 'content-encoding': 'gzip' })).status).toBe(204);
  const { status, json } = await wanted(api.port);
  expect([status, json]).toEqual([200, { ageMs: expect.any(Number) as number, forwarding: forwardingOf() }]);
});

test('the answer is that of the node of the token: nobody answers for another', async () => {
  await using api = await startTestApi();
  await wanted(api.port);
  expect(await answer(api.port, text, 'agent.n2')).toMatchObject(refused(409, 'NotRequested'));
  expect(await answer(api.port, JSON.stringify({ ...forwardingOf(), node: 'n1' }), 'agent.n2')).toMatchObject(
    refused(409, 'NotRequested'),
  );
  expect((await wanted(api.port)).status).toBe(202);
  expect(await answer(api.port, text, 'viewer.anna')).toMatchObject(refused(401, 'Unauthenticated'));
});

test('who may not see the status asks for nothing', async () => {
  await using api = await startTestApi({ viewerAccess: async () => denied });
  expect(await ask(api.port, '/v1alpha1/nodes/n1/forwarding')).toMatchObject(refused(401, 'Unauthenticated'));
  expect(await wanted(api.port)).toMatchObject(refused(403, 'Forbidden'));
  expect((await report(api.port, '{}')).headers).not.toHaveProperty('unbounded-wants');
});

test('a node that has not reported, or not lately, is not asked', async () => {
  const reports = {
    report: (node: string) => (node === 'n1' ? { report: {} as NodeReport, ageMs: 90_000 } : undefined),
  };
  await using api = await startTestApi({ reports });
  expect(await wanted(api.port, 'n9')).toMatchObject(refused(404, 'NodeUnknown'));
  expect(await wanted(api.port, 'N_')).toMatchObject(refused(400, 'InvalidName'));
  expect(await wanted(api.port)).toMatchObject(refused(503, 'NodeNotReporting', expect.stringContaining('90 s ago')));
});

test('too many nodes at once, or a replica that cannot ask, is said with the reason, and counted', async () => {
  const words = ['tooMany', 'away'] as const;
  const forwarding: ForwardingExchange = {
    want: async () => words[asked++]!,
    isWanted: async () => false,
    answer: async () => undefined,
  };
  let asked = 0;
  await using api = await startTestApi({ forwarding });
  expect(await wanted(api.port)).toMatchObject({
    ...refused(429, 'TooManyNodesRequested'),
    headers: { 'retry-after': '10' },
  });
  expect(await wanted(api.port)).toMatchObject({ ...refused(503, 'RedisAway'), headers: { 'retry-after': '5' } });
  const metrics = await api.metrics.render();
  for (const reason of ['TooManyNodesRequested', 'RedisAway'])
    expect(metrics).toContain(`unbounded_status_rejections_total{reason="${reason}"} 1`);
});

test('an answer that is too large, or none, is refused, and what was held stays', async () => {
  await using api = await startTestApi();
  await wanted(api.port);
  expect((await answer(api.port, text)).status).toBe(204);
  const huge = gzipSync(JSON.stringify({ ...forwardingOf(), note: 'x'.repeat(5 << 20) }));
  expect(await answer(api.port, huge, 'agent.n1', { 'content-encoding': 'gzip' })).toMatchObject(
    refused(413, 'TooLarge'),
  );
  await new Promise((resolve) => setTimeout(resolve, 1100)); // one a second of a node
  expect(await answer(api.port, '{"total":-1}')).toMatchObject(refused(400, 'InvalidForwarding'));
  expect((await wanted(api.port)).status).toBe(200);
});

test('a node that answers ever again is refused', async () => {
  await using api = await startTestApi();
  await wanted(api.port);
  const statuses = [];
  for (let time = 0; time < 4; time++) statuses.push((await answer(api.port, text)).status);
  expect(statuses.slice(0, 2)).toEqual([204, 204]);
  expect(statuses).toContain(429);
});

test('the OpenAPI document has both routes', async () => {
  await using api = await startTestApi({ schemas: { Forwarding: { type: 'object' } } });
  const { json } = await ask(api.port, '/openapi.json');
  const schema = { $ref: '#/components/schemas/Forwarding' };
  expect(json).toMatchObject({
    paths: {
      '/v1alpha1/nodes/{name}/forwarding': { get: { responses: { 200: {}, 202: {}, 503: {} } } },
      '/v1alpha1/reports/forwarding': { post: { requestBody: { content: { 'application/json': { schema } } } } },
    },
  });
});
