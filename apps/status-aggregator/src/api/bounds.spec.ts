import { connect, type TLSSocket } from 'node:tls';

import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';

import { VIEWER_PACE } from './request-pace.ts';
import { ask, startTestApi } from './test-api.testdata.ts';

const token = 'viewer.anna';

/** However long all the requests of a test take, they count as one moment. */
const atOnce = (): number => 0;

test('a user who asks ever again is refused and counted, and others are served', async () => {
  await using api = await startTestApi({ elapsed: atOnce });
  const paths = ['/v1alpha1/nodes/n1', '/v1alpha1/nodes/n1/forwarding'];
  const answers = await Promise.all(Array.from({ length: 60 }, (_, at) => ask(api.port, paths[at % 2]!, { token })));
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.length - refused.length).toBe(VIEWER_PACE.burst);
  for (const answer of refused)
    expect(answer).toMatchObject({ json: { reason: 'TooManyRequests' }, headers: { 'retry-after': '1' } });
  expect((await ask(api.port, paths[0]!, { token: 'viewer.berta' })).status).toBe(200);
  const line = `unbounded_status_rejections_total{reason="TooManyRequests"} ${refused.length}`;
  expect(await api.metrics.render()).toContain(line);
});

test('ten dashboards of one user that come back at once are all served', async () => {
  await using api = await startTestApi();
  api.view.push({ text: 'x'.repeat(5000) });
  const all = ['/v1alpha1/view', '/v1alpha1/nodes/n1'].flatMap((path) =>
    Array.from({ length: 10 }, () => ask(api.port, path, { token })),
  );
  expect((await Promise.all(all)).map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
});

test('the description of the API is bounded for all together, and counted', async () => {
  await using api = await startTestApi({ elapsed: atOnce });
  const answers = await Promise.all(Array.from({ length: 60 }, () => ask(api.port, '/openapi.json')));
  const refused = answers.filter(({ status }) => status === 429);
  expect(answers.length - refused.length).toBe(VIEWER_PACE.burst);
  expect(refused[0]).toMatchObject({ json: { reason: 'TooManyRequests' }, headers: { 'retry-after': '1' } });
  expect(await api.metrics.render()).toContain('rejections_total{reason="TooManyRequests"}');
});

/** A client that asks for the view and takes nothing of it. */
const dialSlow = (port: number, user: string): TLSSocket => {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {}).pause();
  socket.write(`GET /v1alpha1/view HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer.${user}\r\n\r\n`);
  return socket;
};

test('a user who takes nothing of what was asked for gets no more of it, others do, and in the end it is cut', async () => {
  const sizeBytes = 20 << 20;
  await using api = await startTestApi({ sendLimits: { bytesOfUser: sizeBytes * 2.5, sendMs: 2000 } });
  api.view.push({ text: 'x'.repeat(sizeBytes) });
  const slow = [dialSlow(api.port, 'anna'), dialSlow(api.port, 'anna')];
  const view = (user: string) => ask(api.port, '/v1alpha1/view', { token: `viewer.${user}` });
  const refused = await until('it is refused', async () => {
    const answer = await view('anna');
    return answer.status === 429 && answer;
  });
  expect(refused).toMatchObject({ json: { reason: 'TooManyBytesInFlight' }, headers: { 'retry-after': '1' } });
  expect((await view('berta')).status).toBe(200);
  await until('the slow ones are cut', async () => (await view('anna')).status === 200);
  for (const socket of slow) socket.destroy();
});

test('an answer that is alone is sent, however large it is', async () => {
  await using api = await startTestApi({ sendLimits: { bytesOfUser: 10, bytes: 10 } });
  api.view.push({ text: 'x'.repeat(5000) });
  for (let time = 0; time < 3; time++) expect((await ask(api.port, '/v1alpha1/view', { token })).status).toBe(200);
});
