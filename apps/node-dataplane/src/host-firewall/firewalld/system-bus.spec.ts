import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from '@unbounded/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSystemBus } from './system-bus.ts';

/** A bus that is not there, or is none. What it does well is shown with the real one (firewalld.kernel.spec.ts). */

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'bus-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const busAt = (socketPath: string) =>
  createSystemBus({
    socketPath,
    service: 'org.example',
    onSignal: () => undefined,
    deadlines: { busMs: 200, serviceMs: 200 },
  });

const serve = async (onSocket: (socket: Socket) => void) => {
  const socketPath = join(folder, 'bus');
  const sockets: Socket[] = [];
  let open = 0;
  const server = createServer((socket) => {
    sockets.push(socket);
    open += 1;
    socket.on('close', () => (open -= 1));
    socket.resume();
    socket.on('error', () => undefined);
    onSocket(socket);
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { socketPath, connections: () => sockets.length, open: () => open, close };
};

test('without a bus nobody has the name', async () => {
  expect(await busAt(join(folder, 'none')).isOwned()).toBe(false);
});

test.each<[string, RegExp, (socket: Socket) => void]>([
  ['ends every connection', /closed/i, (socket) => socket.destroy()],
  ['refuses who we are', /closed/i, (socket) => socket.on('data', () => socket.write('REJECTED EXTERNAL\r\n'))],
  [
    'answers with what is no message',
    /No reply/,
    (socket) => socket.on('data', () => socket.write('x'.repeat(100_000))),
  ],
])('a bus that %s is an error, and is asked again by a new connection', async (_what, message, onSocket) => {
  const server = await serve(onSocket);
  const bus = busAt(server.socketPath);
  await expect(bus.isOwned()).rejects.toThrow(message);
  await until('the connection is over', () => server.open() === 0);
  await expect(bus.isOwned()).rejects.toThrow(message);
  expect(server.connections()).toBe(2);
  bus.close();
  server.close();
});

test('a bus that never answers holds nobody up who closes it', async () => {
  const server = await serve(() => undefined);
  const bus = busAt(server.socketPath);
  const asked = bus.isOwned();
  setTimeout(() => {
    bus.close();
    server.close();
  }, 20);
  await expect(asked).rejects.toThrow(/closed/i);
});
