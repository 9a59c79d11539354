import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '@unbounded/kube';
import type { Forwarding, Push } from '@unbounded/status';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type AggregatorClient, createAggregatorClient } from './aggregator-client.ts';

/** Which of two replicas an agent pushes to, when one of them is of no use. */

const PLACE = { namespace: 'unbounded-system', service: 'status-aggregator' };
const PORT_NAME = 'https';

const folder = mkdtempSync(join(tmpdir(), 'status-replicas-'));
const file = (name: string): string => join(folder, name);
const REPORT = { epoch: 'e', revision: 1, report: {} } as unknown as Push;

beforeAll(() => {
  const name = `${PLACE.service}.${PLACE.namespace}.svc`;
  makeSelfSigned('test', { key: file('key'), cert: file('cert'), altNames: [`DNS:${name}`] });
  writeFileSync(file('token'), 'a-token');
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Replica {
  readonly server: Server;
  readonly port: number;
  /** Answers with it; undefined: not at all. */
  status: number | undefined;
  pushes: number;
}

const startReplica = async (): Promise<Replica> => {
  const server = createServer({ key: readFileSync(file('key')), cert: readFileSync(file('cert')) });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const replica: Replica = { server, port: (server.address() as { port: number }).port, status: 204, pushes: 0 };
  server.on('request', (request, response) => {
    replica.pushes++;
    request.resume();
    if (replica.status !== undefined) response.writeHead(replica.status).end();
  });
  return replica;
};

let replicas: readonly [Replica, Replica];
let client: AggregatorClient;
/** Resolves when it answers. */
let apiServer: (signal: AbortSignal) => Promise<void>;
beforeEach(async () => {
  replicas = [await startReplica(), await startReplica()];
  const slices = replicas.map(({ port }) => ({
    ...{ addressType: 'IPv4', metadata: { name: `s${port}` } },
    ...{ endpoints: [{ addresses: ['127.0.0.1'] }], ports: [{ name: PORT_NAME, port }] },
  }));
  const bundle = { data: { 'ca.crt': readFileSync(file('cert'), 'utf8') } };
  apiServer = () => Promise.resolve();
  const listAll = ({ signal }: { signal: AbortSignal }) => apiServer(signal).then(() => slices);
  const cluster = { client: () => ({ listAll, get: () => Promise.resolve(bundle) }) } as unknown as Cluster;
  client = createAggregatorClient(cluster, { ...PLACE, tokenFile: file('token') });
});
afterEach(() => {
  client[Symbol.dispose]();
  for (const { server } of replicas) {
    server.closeAllConnections();
    server.close();
  }
});

/** Only where no answer comes does anybody wait for as long. */
const push = (withinMs = 30_000): Promise<unknown> =>
  client.send(REPORT, AbortSignal.timeout(withinMs)).catch((error: unknown) => error);
const SILENT_MS = 300;
/** The one that has the first push, and the other one. */
const firstTo = async (): Promise<readonly [used: Replica, other: Replica]> => {
  expect(await push()).toBe('accepted');
  return replicas[0].pushes > 0 ? replicas : [replicas[1], replicas[0]];
};

test('a replica that says twice that it cannot take a report is left for another one', async () => {
  const [used, other] = await firstTo();
  used.status = 503;
  expect(await push()).toMatchObject({ message: expect.stringContaining('answers 503') as string });
  await push();
  expect(await push()).toBe('accepted');
  expect([used.pushes, other.pushes]).toEqual([3, 1]);
});

test('a replica that refuses the report is kept: another one would refuse it as well', async () => {
  const [used, other] = await firstTo();
  used.status = 403;
  for (let attempt = 0; attempt < 5; attempt++) await push();
  expect([used.pushes, other.pushes]).toEqual([6, 0]);
});

test('a replica that does not answer is not taken again while there is another', async () => {
  const [used, other] = await firstTo();
  for (let round = 0; round < 5; round++) {
    const [from, to] = round % 2 === 0 ? [used, other] : [other, used];
    from.status = undefined;
    await push(SILENT_MS);
    expect(await push()).toBe('accepted');
    expect(to.pushes).toBeGreaterThan(0);
    from.status = 204;
  }
});

test('where there is no other, the same is taken again', async () => {
  const [used, other] = await firstTo();
  used.status = undefined;
  await push(SILENT_MS);
  other.status = undefined;
  await push(SILENT_MS);
  used.status = 204;
  expect(await push()).toBe('accepted');
});

test('an answer of what the node forwards by that takes too long delays no push, and leads none elsewhere', async () => {
  const [used, other] = await firstTo();
  used.status = undefined;
  const tooLate = new AbortController();
  const answer = client.sendForwarding({} as Forwarding, tooLate.signal).catch((error: unknown) => error);
  await expect.poll(() => used.pushes).toBe(2);
  used.status = 204;
  expect(await Promise.race([push(), sleep(5000, 'it waits')])).toBe('accepted');
  tooLate.abort();
  expect(await answer).toMatchObject({ name: 'AbortError' });
  expect(await push()).toBe('accepted');
  expect([used.pushes, other.pushes]).toEqual([4, 0]);
});

test('two that begin at once choose one replica', async () => {
  const random = vi.spyOn(Math, 'random').mockReturnValueOnce(0).mockReturnValueOnce(0.9);
  let asked = 0;
  const both = Promise.withResolvers<void>();
  apiServer = () => {
    if (++asked === 2) both.resolve();
    return both.promise;
  };
  expect(await Promise.all([push(), push()])).toEqual(['accepted', 'accepted']);
  random.mockRestore();
  expect(Math.max(...replicas.map(({ pushes }) => pushes))).toBe(2);
});

test('an API server that does not answer leaves time for a push to who is known', async () => {
  const [used, other] = await firstTo();
  used.status = undefined;
  await push(SILENT_MS);
  apiServer = (signal) => once(signal, 'abort').then(() => Promise.reject(signal.reason as Error));
  expect(await push(10_000)).toBe('accepted');
  expect(other.pushes).toBe(1);
});
