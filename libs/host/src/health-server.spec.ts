import { connect, createServer, type Server, type Socket } from 'node:net';
import { createMetrics, type Metrics } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { afterEach, expect, test } from 'vitest';

import {
  type HealthServer,
  type HealthServerOptions,
  listenAddresses,
  type ListenerState,
  startHealthServer,
} from './health-server.ts';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const start = async (options: Partial<HealthServerOptions> = {}): Promise<HealthServer> => {
  const server = await startHealthServer({ port: 0, checks: () => [], metrics: createMetrics(), ...options });
  ends.push(() => server.close());
  return server;
};
const get = async (address: string, port: number, path: string): Promise<number> =>
  (await fetch(`http://${address}:${port}${path}`)).status;

test.each([
  [undefined, ['127.0.0.1']],
  ['', ['127.0.0.1']],
  ['10.0.0.1', ['127.0.0.1', '10.0.0.1']],
  ['10.0.0.1, fd00::1', ['127.0.0.1', '10.0.0.1', 'fd00::1']],
  ['127.0.0.1', ['127.0.0.1']],
  ['0.0.0.0', ['0.0.0.0']],
  ['10.0.0.1,::', ['::']],
])('--health-address %j listens on %j', (flag, addresses) => expect(listenAddresses(flag)).toEqual(addresses));

test('loopback answers everything, other addresses metrics alone, and no further address anything', async () => {
  const { port } = await start({ addresses: ['127.0.0.1', '127.0.0.2'] });
  for (const path of ['/healthz', '/readyz', '/metrics']) expect(await get('127.0.0.1', port, path)).toBe(200);
  expect(await get('127.0.0.2', port, '/metrics')).toBe(200);
  for (const path of ['/healthz', '/readyz']) expect(await get('127.0.0.2', port, path)).toBe(404);
  await expect(get('127.0.0.3', port, '/metrics')).rejects.toThrow('fetch failed');
});

const occupy = async (): Promise<{ readonly server: Server; readonly port: number }> => {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(() => server.close());
  return { server, port: (server.address() as { port: number }).port };
};

test('a port that is taken is told of, tried again, and had as soon as it is free; other addresses listen meanwhile', async () => {
  const { server: owner, port } = await occupy();
  const told: ListenerState[] = [];
  const server = await start({
    port,
    addresses: ['127.0.0.1', '127.0.0.2'],
    onListener: (state) => told.push(state),
    limits: { retryMs: 10 },
  });
  expect(server.listeners).toEqual([{ address: '127.0.0.1', error: 'EADDRINUSE' }, { address: '127.0.0.2' }]);
  expect(await get('127.0.0.2', port, '/metrics')).toBe(200);
  await new Promise((resolve) => owner.close(resolve));
  await until('the port is had', async () => (await get('127.0.0.1', port, '/healthz')) === 200);
  expect(told).toEqual([{ address: '127.0.0.1', error: 'EADDRINUSE' }, { address: '127.0.0.1' }]);
  expect(server.listeners).toEqual([{ address: '127.0.0.1' }, { address: '127.0.0.2' }]);
});

const limits = { connections: 8, headersMs: 200, idleMs: 200, requestMs: 300, responseMs: 400 };

/** So many connections that say this and nothing more. How many of them the server has closed. */
const flood = async (port: number, count: number, text = ''): Promise<() => number> => {
  let closed = 0;
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index++) {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    socket.on('error', () => undefined).once('close', () => closed++);
    socket.resume();
    sockets.push(socket);
  }
  await until('all are open', () => sockets.every(({ connecting }) => !connecting));
  ends.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  return () => closed;
};

test.each([
  ['say nothing', ''],
  ['stop in the middle of a request', 'GET /metrics HTTP/1.1\r\nHost: x\r\n'],
  ['begin a body that never comes', 'POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n'],
])(
  '500 connections that %s hold no more than the limit, all are closed, and then the kubelet is answered',
  async (_, text) => {
    const { port } = await start({ limits });
    const closed = await flood(port, 500, text);
    await until('those beyond the limit are closed', () => closed() >= 500 - limits.connections);
    await until('all are closed', () => closed() === 500);
    expect(await get('127.0.0.1', port, '/healthz')).toBe(200);
  },
);

test('an answer that nobody takes is given up', async () => {
  const text = 'x'.repeat(64 << 20);
  const metrics = { ...createMetrics(), contentType: 'text/plain', render: async () => text } as Metrics;
  const { port } = await start({ metrics, limits: { ...limits, idleMs: 60_000 } });
  const socket = connect(port, '127.0.0.1', () => socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'));
  ends.push(() => socket.destroy());
  const ended = new Promise((resolve) => socket.once('close', resolve));
  socket.on('error', () => undefined);
  const timer = setTimeout(() => socket.resume(), 2 * limits.responseMs); // only then is the end noticed
  await ended;
  clearTimeout(timer);
  expect(socket.bytesRead).toBeLessThan(text.length);
});

test('one rendering serves all who ask while it goes on', async () => {
  let renderings = 0;
  const going = Promise.withResolvers<void>();
  const metrics = {
    ...createMetrics(),
    contentType: 'text/plain',
    render: async () => {
      renderings++;
      await going.promise;
      return 'x';
    },
  } as Metrics;
  const { port } = await start({ metrics });
  const answers = Array.from({ length: 10 }, () => get('127.0.0.1', port, '/metrics'));
  await until('one has begun', () => renderings > 0);
  setTimeout(() => going.resolve(), 50);
  expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
  expect(renderings).toBeLessThan(10);
});
