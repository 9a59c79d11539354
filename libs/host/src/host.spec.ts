import { connect } from 'node:net';

import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import { drainParts } from './drain.ts';
import { startHealthServer } from './health-server.ts';
import type { HostPart } from './part.ts';

const part = (name: string, stop: () => Promise<void> | void): HostPart => ({ name, start: () => {}, stop });

test('parts stop in the reverse order, each after the other has ended', async () => {
  const order: string[] = [];
  const slow = (name: string) =>
    part(name, async () => {
      order.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${name} ends`);
    });
  expect(await drainParts([slow('a'), slow('b')], 1000, silentLogger)).toEqual([]);
  expect(order).toEqual(['b begins', 'b ends', 'a begins', 'a ends']);
});

test('a part that hangs or fails is named, and the rest still stops', async () => {
  const stopped: string[] = [];
  const parts = [
    part('first', () => void stopped.push('first')),
    part('fails', () => Promise.reject(new Error('no'))),
    part('hangs', () => new Promise(() => {})),
  ];
  expect(await drainParts(parts, 20, silentLogger)).toEqual(['hangs', 'fails']);
  expect(stopped).toEqual(['first']);
});

test('the health server answers by what the checks say', async () => {
  const metrics = createMetrics();
  metrics.counter({ name: 'x_total', help: 'x' }).inc();
  let isReady = false;
  const server = await startHealthServer({ port: 0, checks: () => [{ name: 'caches', isReady }], metrics });
  const get = async (path: string, method = 'GET') => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method });
    return [response.status, await response.text()] as const;
  };
  try {
    expect(await get('/healthz')).toEqual([200, 'ok\n']);
    expect(await get('/readyz')).toEqual([503, '[-]caches not ready\n']);
    isReady = true;
    expect(await get('/readyz?verbose')).toEqual([200, '[+]caches ok\n']);
    expect((await get('/metrics'))[1]).toContain('x_total 1');
    expect((await get('/nothing'))[0]).toBe(404);
    expect((await get('/healthz', 'POST'))[0]).toBe(405);
  } finally {
    await server.close();
  }
});

test('a flood of connections, and of requests that never end, keeps nobody from the health server', async () => {
  const server = await startHealthServer({ port: 0, checks: () => [], metrics: createMetrics() });
  const flood = Array.from({ length: 500 }, () => {
    const socket = connect({ port: server.port, host: '127.0.0.1' });
    const isOpen = new Promise((resolve) => socket.once('connect', resolve).once('close', resolve));
    let isCut = false;
    socket.on('error', () => {}).on('close', () => (isCut = true));
    socket.resume().write('GET /metrics HTTP/1.1\r\nX: ');
    return { socket, isOpen, isCut: () => isCut };
  });
  try {
    await Promise.all(flood.map(({ isOpen }) => isOpen));
    for (let count = 0; count < 20; count++)
      expect(
        (await fetch(`http://127.0.0.1:${server.port}/healthz`, { headers: { connection: 'close' } })).status,
      ).toBe(200);
    // Most are cut for those that came after them, the rest when their time is over.
    expect(flood.filter(({ isCut }) => isCut()).length).toBeGreaterThanOrEqual(430);
    while (!flood.every(({ isCut }) => isCut())) await new Promise((resolve) => setTimeout(resolve, 20));
  } finally {
    for (const { socket } of flood) socket.destroy();
    await server.close();
  }
}, 20_000);
