import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';

import { ApiError, IdleError, isNotFound, NoAnswerError, TransportError } from './api-error.ts';
import { connect, ConnectionError } from './connection.ts';
import { createTransport, type RequestObserver } from './transport.ts';

const ends: (() => void)[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const end of ends.splice(0)) end();
});

/** A transport to a server that answers as told. */
const serve = async (
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  observe?: RequestObserver,
) => {
  const server: Server = createServer(answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const transport = createTransport(
    {
      server: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
      credentials: () => Promise.resolve({ headers: { authorization: 'Bearer t' } }),
      close: () => {},
    },
    observe,
  );
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return transport;
};
const get = { method: 'GET', path: '/x' } as const;
const collect = async (lines: AsyncGenerator): Promise<unknown[]> => {
  const all: unknown[] = [];
  for await (const line of lines) all.push(line);
  return all;
};

test('a refusal carries status, reason and message', async () => {
  const body = { kind: 'Status', code: 404, reason: 'NotFound', message: 'sites "a" not found' };
  const transport = await serve((_, response) => response.writeHead(404).end(JSON.stringify(body)));
  const error = await transport.send(get).catch((cause: unknown) => cause);
  expect(error).toSatisfy(isNotFound);
  expect(error).toMatchObject({ status: 404, reason: 'NotFound', message: 'GET /x: 404 sites "a" not found' });
});

test('a refusal that is no JSON is told as it is', async () => {
  const transport = await serve((_, response) => response.writeHead(502).end('bad gateway'));
  await expect(transport.send(get)).rejects.toThrow('GET /x: 502 bad gateway');
  await expect(transport.send(get)).rejects.toBeInstanceOf(ApiError);
});

test('"too many requests" is repeated after the time that the server says, and counted', async () => {
  const codes: string[] = [];
  let asked = 0;
  const transport = await serve(
    (_, response) => (++asked < 3 ? response.writeHead(429, { 'retry-after': '0' }).end() : response.end('{"a":1}')),
    ({ code }) => codes.push(code),
  );
  expect(await transport.send(get)).toEqual({ a: 1 });
  expect(codes).toEqual(['429', '429', '200']);
});

test('an answer that goes on for ever ends after five minutes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const transport = await serve((_, response) => void response.write('{"a":'));
  const answer = transport.send(get).catch((cause: unknown) => cause);
  await vi.waitUntil(() => vi.getTimerCount() > 0);
  vi.advanceTimersByTime(300_000);
  expect(await answer).toBeInstanceOf(TransportError);
  expect(vi.getTimerCount()).toBe(0);
});

test('an observer is told how long it took until an answer began', async () => {
  const took: number[] = [];
  const transport = await serve(
    (_, response) => void setTimeout(() => response.end('{}'), 30),
    (_, tookMs) => took.push(tookMs),
  );
  await transport.send(get);
  expect(took).toHaveLength(1);
  expect(took[0]).toBeGreaterThanOrEqual(29);
});

test('a server that is away is a transport error, and counted', async () => {
  const codes: string[] = [];
  const transport = createTransport(
    { server: new URL('http://127.0.0.1:1'), credentials: () => Promise.resolve({}), close: () => {} },
    ({ code }) => codes.push(code),
  );
  await expect(transport.send(get)).rejects.toBeInstanceOf(TransportError);
  expect(codes).toEqual(['<error>']);
});

test('a server that says nothing is given up', async () => {
  const transport = await serve(() => {});
  const late = new NoAnswerError('GET /x: no answer for 30 ms');
  await expect(transport.send({ ...get, idleTimeoutMs: 30 })).rejects.toThrow(late);
});

test('a server that is reached and never asks for the request is no server: nobody’s write hangs there', async () => {
  const sockets: Socket[] = [];
  // Takes connections, and shakes no hand.
  const server = createNetServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const connection = { server: new URL(`https://127.0.0.1:${port}`), credentials: async () => ({}), close: () => {} };
  const answer = (idleTimeoutMs: number): Promise<unknown> =>
    createTransport(connection, () => {})
      .send({ ...get, idleTimeoutMs })
      .catch((error: unknown) => error);
  const late = await answer(30);
  expect(late).toBeInstanceOf(TransportError);
  expect(late).not.toBeInstanceOf(NoAnswerError);
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const watching = answer(150_000); // as long as a watch may be silent
  await vi.waitUntil(() => sockets.length === 2);
  vi.advanceTimersByTime(10_000);
  expect(String(await watching)).toContain('no connection within 10000 ms');
  server.close();
  for (const socket of sockets) socket.destroy();
});

test('requests over one connection leave nothing behind at its socket', async () => {
  const sockets = new Set<Socket>();
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const server = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const credentials = async () => ({ agent });
  const transport = createTransport(
    { server: new URL(`http://127.0.0.1:${port}`), credentials, close: () => {} },
    () => {},
  );
  agent.on('free', (socket: Socket) => void sockets.add(socket));
  for (let count = 0; count < 20; count++) await transport.send(get);
  expect(sockets.size).toBe(1);
  for (const name of ['connect', 'secureConnect', 'timeout', 'error', 'close'])
    expect([...sockets][0]!.listenerCount(name)).toBeLessThan(5);
  agent.destroy();
  server.close();
});

test('a stream on which nothing more comes is told from one that breaks off', async () => {
  const transport = await serve((_, response) => void response.write('{"a":1}\n'));
  const seen: unknown[] = [];
  const read = async () => {
    for await (const line of transport.stream({ ...get, idleTimeoutMs: 500 })) seen.push(line);
  };
  await expect(read()).rejects.toThrow(new IdleError('GET /x: nothing more for 500 ms'));
  expect(seen).toEqual([{ a: 1 }]);
});

test('lines are parsed however they are cut, and a stream that breaks off is an error after what came', async () => {
  const whole = await serve((_, response) => {
    response.write('{"a":1}\n{"b"');
    setImmediate(() => response.end(':"ü"}\n'));
  });
  expect(await collect(whole.stream(get))).toEqual([{ a: 1 }, { b: 'ü' }]);
  const broken = await serve((_, response) => {
    response.write('{"a":1}\n');
    setImmediate(() => response.destroy());
  });
  const seen: unknown[] = [];
  const read = async () => {
    for await (const line of broken.stream(get)) seen.push(line);
  };
  await expect(read()).rejects.toBeInstanceOf(TransportError);
  expect(seen).toEqual([{ a: 1 }]);
});

test('a garbled line is a transport error that shows it', async () => {
  const transport = await serve((_, response) => response.end('{"a":\n'));
  await expect(collect(transport.stream(get))).rejects.toThrow('is no JSON: {"a":');
});

test('leaving a stream ends its connection', async () => {
  const closed = Promise.withResolvers<void>();
  const transport = await serve((request, response) => {
    request.socket.once('close', () => closed.resolve());
    response.write('{"a":1}\n');
  });
  for await (const line of transport.stream(get)) {
    expect(line).toEqual({ a: 1 });
    break;
  }
  await closed.promise;
});

test.each([
  ['of a kubeconfig', (tokenFile: string) => ({ tokenFile })],
  ['of a service account', (tokenFile: string) => ({ 'auth-provider': { name: 'tokenFile', config: { tokenFile } } })],
])('a token file %s that was rotated is read again within a minute', async (_, userOf) => {
  const directory = mkdtempSync(join(tmpdir(), 'unbounded-token-'));
  ends.push(() => rmSync(directory, { recursive: true }));
  const [tokenFile, kubeconfig] = [join(directory, 'token'), join(directory, 'kubeconfig')];
  writeFileSync(tokenFile, 'old');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'x',
    clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
    users: [{ name: 'u', user: userOf(tokenFile) }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  };
  writeFileSync(kubeconfig, JSON.stringify(config));
  vi.useFakeTimers({ toFake: ['Date'] });
  const connection = connect(kubeconfig);
  const headers = async () => (await connection.credentials()).headers;
  expect(await headers()).toMatchObject({ Authorization: 'Bearer old' });
  writeFileSync(tokenFile, 'new\n');
  vi.setSystemTime(Date.now() + 61_000);
  expect(await headers()).toMatchObject({ Authorization: 'Bearer new' });
  connection.close();
});

test('a kubeconfig that is not there is named', () => {
  expect(() => connect('/nonexistent/config')).toThrow(ConnectionError);
  expect(() => connect('/nonexistent/config')).toThrow('kubeconfig "/nonexistent/config" does not exist');
});

test('of the addresses of many servers the last ones are known, with when each was used', async () => {
  const server = createServer((_, response) => response.end('{}')).listen(0, '0.0.0.0');
  await new Promise((resolve) => server.once('listening', resolve));
  ends.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  let host = 1;
  const transport = createTransport({
    get server() {
      return new URL(`http://127.0.0.${host}:${port}`);
    },
    credentials: () => Promise.resolve({}),
    close: () => {},
  });
  for (host = 1; host <= 66; host++) await transport.send(get);
  const [first, second] = transport.peerAddresses;
  expect([first?.[0], transport.peerAddresses.size]).toEqual(['127.0.0.3', 64]);
  expect(second![1]).toBeGreaterThan(first![1]);
  host = 3;
  await transport.send(get);
  expect([...transport.peerAddresses.keys()].at(-1)).toBe('127.0.0.3');
});
