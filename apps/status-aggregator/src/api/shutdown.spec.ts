import { once } from 'node:events';
import { connect, type TLSSocket } from 'node:tls';

import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';

import type { Accepted } from '../intake.port.ts';
import { ask, report, startTestApi } from './test-api.testdata.ts';

const dial = async (port: number): Promise<TLSSocket> => {
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  return socket;
};

test('a request that is being answered is finished, and then nobody is', async () => {
  const gate = Promise.withResolvers<Accepted>();
  let isAsked = false;
  const accept = (): Promise<Accepted> => {
    isAsked = true;
    return gate.promise;
  };
  const api = await startTestApi({ intake: { accept } });
  const { port } = api;
  const answer = report(port, '{}');
  await until('it is being answered', () => isAsked);
  const stopped = api.part.stop();
  gate.resolve('accepted');
  expect((await answer).status).toBe(204);
  await stopped;
  expect(api.part.isReady).toBe(false);
  await expect(ask(port, '/openapi.json')).rejects.toThrow('ECONNREFUSED');
});

test('strangers push out each other, and nobody who has proven who it is', async () => {
  await using api = await startTestApi({ mostStrangers: 3 });
  const known = await dial(api.port);
  known.write('GET /v1alpha1/nodes/n1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer viewer.anna\r\n\r\n');
  await once(known, 'data');
  const strangers: TLSSocket[] = [];
  for (let count = 0; count < 6; count++) strangers.push(await dial(api.port));
  await until('the oldest are cut', () => strangers.filter(({ closed }) => closed).length === 3);
  expect(strangers.map(({ closed }) => closed)).toEqual([true, true, true, false, false, false]);
  expect(known.closed).toBe(false);
  for (const socket of [known, ...strangers]) socket.destroy();
});

test('an upgrade elsewhere, or of an address that is none, is cut and harms nobody', async () => {
  await using api = await startTestApi();
  for (const path of ['/v1alpha1/other', '//', 'http://[']) {
    const socket = await dial(api.port);
    const closed = once(socket, 'close');
    socket.resume().write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await closed;
  }
  expect((await report(api.port, '{}')).status).toBe(204);
  expect(await api.metrics.render()).toContain('unbounded_status_rejections_total{reason="NotFound"} 3');
});
