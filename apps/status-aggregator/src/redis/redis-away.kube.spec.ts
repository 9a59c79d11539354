import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { makeSelfSigned } from '@unbounded/testing/self-signed';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '@unbounded/status';
import { forwardingOf } from '../forwarding/forwarding.testdata.ts';
import { freePort, startTestRedis } from './redis-server.testdata.ts';
import { addressOf, fileOf, reportOf, startReplica } from './replica.testdata.ts';

const HELD = 'unbounded:status:{test}:held';
const whole = (revision = 1, version = '0.1.0') => ({ epoch: 'e', revision, report: reportOf(version) });
const delta = (base: number, patch: object) => ({ epoch: 'e', revision: base + 1, base, patch: patch as JsonObject });

/** All that is logged, as text. */
const recorder = () => {
  const lines: string[] = [];
  const record = (...args: unknown[]): void => {
    const [first] = args;
    const err = (first as { err?: Error } | undefined)?.err;
    lines.push(JSON.stringify(args) + (err ? `${err.message} ${err.stack} ${JSON.stringify(err)}` : ''));
  };
  const logger = { trace: record, debug: record, info: record, warn: record, error: record, fatal: record };
  return { logger: logger as unknown as Logger, text: () => lines.join('\n'), lines };
};

let folder: string;
beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'status-redis-'))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('while Redis is away', () => {
  it('reports are taken and the view stands; when it is back empty, all of them and a new history are there', async () => {
    await using redis = await startTestRedis();
    await using a = startReplica(redis.port);
    await using b = startReplica(redis.port);
    await a.reports.accept('n1', whole());
    await until('the view of both', () =>
      [a, b].every(({ view }) => view.current()?.view.nodes['n1']?.state === 'Unknown' || view.current()),
    );
    await until('Redis has it', () => b.reports.report('n1') ?? a.reports.accept('n1', whole(2)).then(() => undefined));
    const before = await until('the view', () => {
      const current = a.view.current();
      return current?.view.nodes['n1']?.state === 'Healthy' && current;
    });
    expect(a.view.notices!()).toEqual([]);
    expect(await a.metric('unbounded_status_redis_up')).toBe(1);
    await redis.kill();
    await until('it is noticed', () => a.view.notices!().length === 1);
    expect(await a.metric('unbounded_status_redis_up')).toBe(0);
    expect(a.part.isReady).toBe(true);
    expect(a.view.current()!.position).toBe(before.position);
    expect(a.view.since(before.position)).toEqual([]);
    expect(await b.reports.accept('n2', whole(1, 'while-away'))).toBe('accepted');
    expect(await b.reports.accept('n2', delta(1, { agentVersion: 'away-2' }))).toBe('accepted');
    expect(await a.reports.accept('n3', delta(4, {}))).toBe('resync');
    await sleep(300);
    await redis.start();
    await until('the view has all', () =>
      [a, b].every(({ view }) => ['n1', 'n2'].every((node) => view.current()!.view.nodes[node]?.state === 'Healthy')),
    );
    expect(a.reports.report('n2')?.report.agentVersion).toBe('away-2');
    expect(a.reports.report('n2')!.ageMs).toBeGreaterThan(250);
    const [history] = before.position.split('-');
    await until('another history', () =>
      [a, b].every(({ view }) => !view.current()!.position.startsWith(`${history}-`)),
    );
    expect(a.view.since(before.position)).toBeUndefined();
    expect([a, b].every(({ told }) => told.some(({ patch }) => patch === undefined))).toBe(true);
    expect(await a.reports.accept('n2', delta(2, { agentVersion: 'after' }))).toBe('accepted');
    expect(a.view.notices!()).toEqual([]);
  });

  it('a replica that starts becomes ready, takes reports, and has a view as soon as Redis is there', async () => {
    await using redis = await startTestRedis();
    await redis.kill();
    let passedMs = 0;
    const clocks = { elapsed: () => performance.now() + passedMs, now: () => new Date() };
    await using a = startReplica(redis.port, { clocks });
    expect(a.part.isReady).toBe(false);
    expect(await a.reports.accept('n1', whole())).toBe('accepted');
    passedMs = 6000;
    expect([a.part.isReady, a.view.current()]).toEqual([true, undefined]);
    await redis.start();
    await until('the view has it', () => a.view.current()?.view.nodes['n1']?.state === 'Healthy');
  });

  it('frozen, it delays no push for longer than a command may take, and nothing piles up', async () => {
    await using redis = await startTestRedis();
    await using a = startReplica(redis.port, { connection: { commandTimeoutMs: 300 } });
    await until('a view', () => a.view.current());
    await a.reports.accept('n1', whole());
    redis.freeze();
    const heapBytes = (): number => (globalThis.gc?.(), process.memoryUsage().heapUsed);
    const before = heapBytes();
    const until4s = performance.now() + 4000;
    let revision = 1;
    while (performance.now() < until4s) {
      const pushes = ['n1', 'n2', 'n3'].map((node) => a.reports.accept(node, whole(++revision, `v${revision}`)));
      const late = new AbortController();
      // A timer that begins with them: what holds up this process holds up both.
      const answers = await Promise.race([Promise.all(pushes), sleep(1500, 'late', { signal: late.signal })]);
      late.abort();
      expect(answers).toEqual(['accepted', 'accepted', 'accepted']);
      await sleep(1);
    }
    expect(revision).toBeGreaterThan(500);
    expect(heapBytes() - before).toBeLessThan(64 * 1024 * 1024);
    redis.thaw();
    await until(
      'the last is in Redis and in the view',
      () => a.view.current()!.view.nodes['n3']?.agentVersion === `v${revision}`,
    );
    await until('Redis is up', async () => (await a.metric('unbounded_status_redis_up')) === 1);
  });

  it('memory full, reports are taken, and the view is said to stand still', async () => {
    await using redis = await startTestRedis();
    await using a = startReplica(redis.port);
    await until('a view', () => a.view.current());
    await redis.client.config('SET', 'maxmemory', '1');
    expect(await a.reports.accept('n1', whole())).toBe('accepted');
    expect(a.reports.report('n1')).toBeDefined();
    expect(await a.metric('unbounded_status_redis_errors_total{operation="publish"}')).toBeGreaterThan(0);
    await until('it is told', () => a.view.notices!().length === 1);
    expect(a.view.notices!()[0]).toContain('does not store');
    await redis.client.config('SET', 'maxmemory', '0');
    await until('it is written after all', async () => (await redis.client.hexists(HELD, 'n1')) === 1);
    await until('it is told no more', () => a.view.notices!().length === 0);
  });

  it('a server that became a read-only replica is left, for the one that has its address by then', async () => {
    await using primary = await startTestRedis();
    await using other = await startTestRedis();
    let target = other.port;
    const sockets = new Set<Socket>();
    const forwarder = createServer((from) => {
      const to = connect(target, '127.0.0.1');
      for (const socket of [from, to]) {
        sockets.add(socket);
        socket.on('error', () => undefined).on('close', () => void [from.destroy(), to.destroy()]);
      }
      from.pipe(to).pipe(from);
    });
    await once(forwarder.listen(0, '127.0.0.1'), 'listening');
    await using a = startReplica((forwarder.address() as AddressInfo).port);
    try {
      await until('a view', () => a.view.current());
      await other.client.call('REPLICAOF', '127.0.0.1', `${primary.port}`);
      target = primary.port;
      await a.reports.accept('n1', whole());
      await until('the other server has it', async () => (await primary.client.hexists(HELD, 'n1')) === 1);
      await until('the view has it', () => a.view.current()!.view.nodes['n1']?.state === 'Healthy');
      expect(a.view.notices!()).toEqual([]);
    } finally {
      forwarder.close();
      for (const socket of sockets) socket.destroy();
    }
  });
});

describe('memory', () => {
  it('of Redis does not grow with the number of pushes', async () => {
    await using redis = await startTestRedis();
    await using a = startReplica(redis.port);
    await until('a view', () => a.view.current());
    const usedBytes = async () => Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))![1]);
    const push = async (from: number, pushes: number) => {
      for (let revision = from; revision < from + pushes; revision += 50)
        await Promise.all(
          Array.from({ length: 50 }, (_, at) => a.reports.accept(`n${(at % 3) + 1}`, whole(revision + at, `v${at}`))),
        );
    };
    await push(1, 11_000);
    const first = await usedBytes();
    await push(20_000, 2000);
    expect((await usedBytes()) - first).toBeLessThan(4 * 1024 * 1024);
    expect(await redis.client.xlen('unbounded:status:{test}:reports')).toBeLessThan(11_000);
    expect(await redis.client.hlen('unbounded:status:{test}:held')).toBe(3);
  });
});

describe('what is wrong with the connection is named, and the secret is not', () => {
  const SECRET = 'correct-horse-battery';

  it('a wrong password; the right one, once it is in the file, without a restart', async () => {
    await using redis = await startTestRedis(['--requirepass', SECRET], { password: SECRET });
    const passwordFile = fileOf(folder, 'password', 'wrong-staple-secret\n');
    const { logger, text } = recorder();
    await using a = startReplica(redis.port, { connection: { passwordFile }, logger });
    await until('it is told', () => text().includes('WRONGPASS'));
    fileOf(folder, 'password', `${SECRET}\n`);
    await until('a view', () => a.view.current());
    expect(text()).not.toMatch(/staple|battery/);
  });

  it('a user with the rights that the guide names is enough', async () => {
    await using redis = await startTestRedis();
    const guide = readFileSync(join(import.meta.dirname, '../../../../docs/status.md'), 'utf8');
    const rights = /`(~unbounded:status:\* [^`]+)`/.exec(guide)![1]!.split(' ');
    await redis.client.call('ACL', 'SETUSER', 'status', 'on', `>${SECRET}`, ...rights);
    await redis.client.call('ACL', 'SETUSER', 'default', 'off', 'nopass');
    const passwordFile = fileOf(folder, 'of-user', SECRET);
    const address = { ...addressOf(redis.port), username: 'status' };
    const { logger, text } = recorder();
    await using a = startReplica(redis.port, { connection: { passwordFile, address }, logger });
    await until('a view', () => a.view.current());
    await a.reports.accept('n1', whole());
    await until('the view has it', () => a.view.current()!.view.nodes['n1']?.state === 'Healthy');
    a.reports.forget(() => false);
    expect(await a.forwarding.want('n1')).toEqual({});
    expect(await a.forwarding.isWanted('n1')).toBe(true);
    await a.forwarding.answer('n1', forwardingOf());
    expect(await a.forwarding.want('n1')).toHaveProperty('answer');
    expect(text()).not.toMatch(/NOPERM|battery/);
    expect(await a.metric('unbounded_status_redis_errors_total{operation="publish"}')).toBe(0);
  });

  it('no password where one is required', async () => {
    await using redis = await startTestRedis(['--requirepass', SECRET], { password: SECRET });
    const { logger, text } = recorder();
    await using a = startReplica(redis.port, { logger });
    await until('it is told', () => text().includes('NOAUTH'));
    expect(await a.reports.accept('n1', whole())).toBe('accepted');
    expect(text()).not.toContain('battery');
  });

  it('TLS: an unknown authority, a server without TLS; with the authority it works', async () => {
    const [key, cert] = [join(folder, 'tls.key'), join(folder, 'tls.crt')];
    makeSelfSigned('localhost', { key, cert, altNames: ['DNS:localhost', 'IP:127.0.0.1'] });
    await using plain = await startTestRedis();
    const port = plain.port;
    const tlsOf = (at: number) => ({ ...addressOf(at), host: 'localhost', isTls: true });
    const ofPlain = recorder();
    await using a = startReplica(port, { connection: { address: tlsOf(port) }, logger: ofPlain.logger });
    await until('it is told', () => ofPlain.text().includes('not speak TLS'));
    const files = [
      '--tls-cert-file',
      cert,
      '--tls-key-file',
      key,
      '--tls-ca-cert-file',
      cert,
      '--tls-auth-clients',
      'no',
    ];
    const tlsPort = await freePort();
    await using server = await startTestRedis(['--tls-port', `${tlsPort}`, ...files]);
    const ofStranger = recorder();
    await using b = startReplica(tlsPort, { connection: { address: tlsOf(tlsPort) }, logger: ofStranger.logger });
    await until('it is told', () => ofStranger.text().includes('trusted authority'));
    await using c = startReplica(tlsPort, { connection: { address: tlsOf(tlsPort), caFile: cert } });
    await until('a view', () => c.view.current());
    const renewed = join(folder, 'authority.crt');
    writeFileSync(renewed, '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n');
    await using d = startReplica(tlsPort, { connection: { address: tlsOf(tlsPort), caFile: renewed } });
    await sleep(300);
    expect(d.view.current()).toBeUndefined();
    copyFileSync(cert, renewed);
    await until('a view by the authority that is there by now', () => d.view.current());
    expect([a.view.current(), b.view.current(), server.port > 0]).toEqual([undefined, undefined, true]);
  });
});
