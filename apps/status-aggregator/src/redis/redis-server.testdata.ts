import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { until } from '@unbounded/testing';

/** A real redis-server on loopback, without a file on disk; it dies with the process that started it. */
export interface TestRedis extends AsyncDisposable {
  readonly port: number;
  /** Of a person or another program: writes what it wants. */
  readonly client: Redis;
  kill(): Promise<void>;
  /** Empty again, at the same port. */
  start(): Promise<void>;
  freeze(): void;
  thaw(): void;
}

/** Not the next one to it: the kernel gives those of the other parity to outgoing connections. */
export const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return (address as { port: number }).port;
};

export const startTestRedis = async (flags: readonly string[] = [], clientOptions: object = {}): Promise<TestRedis> => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-redis-'));
  writeFileSync(join(folder, 'redis.conf'), '');
  const port = await freePort();
  let child: ChildProcess | undefined;
  const client = new Redis({
    port,
    host: '127.0.0.1',
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
    ...clientOptions,
  });
  client.on('error', () => {}); // while it is killed
  const start = async (): Promise<void> => {
    const log = openSync(join(folder, 'log'), 'a');
    const args = [
      '--bind',
      '127.0.0.1',
      '--port',
      `${port}`,
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      folder,
      ...flags,
    ];
    child = spawn('setpriv', ['--pdeathsig', 'KILL', 'redis-server', join(folder, 'redis.conf'), ...args], {
      stdio: ['ignore', log, log],
    });
    await until('Redis answers', async () => client.status === 'ready' && (await client.ping()) === 'PONG');
  };
  const kill = async (): Promise<void> => {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await until('its end is seen', () => client.status !== 'ready');
  };
  await start();
  return {
    ...{ port, client, kill, start },
    freeze: () => void child?.kill('SIGSTOP'),
    thaw: () => void child?.kill('SIGCONT'),
    [Symbol.asyncDispose]: async () => {
      client.disconnect();
      child?.kill('SIGCONT');
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};
