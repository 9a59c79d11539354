import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { applyMergePatch, type JsonObject, type Push } from '@unbounded/status';
import { until } from '@unbounded/testing';
import { createMetrics, silentLogger } from '@unbounded/telemetry';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { ViewStream } from '../intake.port.ts';
import { redisKeys } from './keys.ts';
import { createRedisLink } from './redis-link.ts';
import { redisMetrics } from './redis-metrics.ts';
import { createReportStore } from './report-store.ts';
import { createReplicatedView } from './replicated-view.ts';
import { createViewStore } from './view-store.ts';
import { startTestRedis, type TestRedis } from './redis-server.testdata.ts';
import { addressOf, inputsOf, reportOf, startReplica } from './replica.testdata.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(async () => redis?.[Symbol.asyncDispose]());
beforeEach(async () => void (await redis.client.flushall()));

const KEY = (name: string): string => `unbounded:status:{test}:${name}`;
const whole = (revision = 1, epoch = 'e', version = '0.1.0'): Push => ({ epoch, revision, report: reportOf(version) });
const delta = (base: number, patch: object, epoch = 'e'): Push => ({
  ...{ epoch, revision: base + 1, base },
  patch: patch as JsonObject,
});
const versionAt = (replica: { reports: ReturnType<typeof startReplica>['reports'] }, node: string) =>
  replica.reports.report(node)?.report.agentVersion;
const hasView = ({ view }: { view: ViewStream }) => until('a view', () => view.current());

describe('reports', () => {
  it('pushed to one replica are read at the other, with their age', async () => {
    await using a = startReplica(redis.port);
    await using b = startReplica(redis.port);
    await Promise.all([hasView(a), hasView(b)]);
    const acceptedMs = performance.now();
    expect(await a.reports.accept('n1', whole())).toBe('accepted');
    await until('it is at the other', () => versionAt(b, 'n1') === '0.1.0');
    await sleep(300);
    await using c = startReplica(redis.port);
    const found = await until('it is at one that starts later', () => c.reports.report('n1'));
    expect(found.ageMs).toBeGreaterThan(250);
    expect(found.ageMs).toBeLessThanOrEqual(performance.now() - acceptedMs);
    await until('the view has it, everywhere', () =>
      [a, b, c].every(({ view }) => view.current()?.view.nodes['n1']?.state === 'Healthy'),
    );
  });

  it('go on by deltas at whichever replica, at once', async () => {
    await using a = startReplica(redis.port, { followEveryMs: 500 });
    await using b = startReplica(redis.port, { followEveryMs: 500 });
    await Promise.all([hasView(a), hasView(b)]);
    await a.reports.accept('n1', whole());
    for (let revision = 1; revision < 20; revision++) {
      const { reports } = revision % 2 ? b : a;
      expect(await reports.accept('n1', delta(revision, { agentVersion: `v${revision + 1}` }))).toBe('accepted');
    }
    await until('both have the last', () => [a, b].every((replica) => versionAt(replica, 'n1') === 'v20'));
  });

  it('are asked for whole where nobody has the base', async () => {
    await using a = startReplica(redis.port);
    await hasView(a);
    expect(await a.reports.accept('n1', delta(3, {}))).toBe('resync');
    await a.reports.accept('n1', whole(4));
    expect(await a.reports.accept('n1', delta(4, {}, 'other-epoch'))).toBe('resync');
    await redis.client.hdel(KEY('held'), 'n1');
    expect(await a.reports.accept('n1', delta(4, {}))).toBe('resync');
    expect(await a.reports.accept('n1', whole(5))).toBe('accepted');
    expect(await a.reports.accept('n1', { epoch: 'e', revision: 6, report: { agentVersion: 7 } })).toMatchObject({
      error: expect.stringContaining('agentVersion') as string,
    });
  });

  it('that come late do not take the place of later ones', async () => {
    await using a = startReplica(redis.port);
    await using b = startReplica(redis.port);
    await Promise.all([hasView(a), hasView(b)]);
    await a.reports.accept('n1', whole(9, 'e', 'late'));
    expect(await b.reports.accept('n1', whole(8, 'e', 'early'))).toBe('resync');
    const both = await Promise.all([
      a.reports.accept('n1', delta(9, { agentVersion: 'x' })),
      b.reports.accept('n1', delta(9, { agentVersion: 'x' })),
    ]);
    expect(new Set(both)).toEqual(new Set(['accepted', 'resync']));
    await until('both have it', () => [a, b].every((replica) => versionAt(replica, 'n1') === 'x'));
  });

  it('that are too large for the stream come by the hash', async () => {
    await using a = startReplica(redis.port);
    await using b = startReplica(redis.port);
    await Promise.all([hasView(a), hasView(b)]);
    // Hardly compressible.
    const drops = Object.fromEntries(
      Array.from({ length: 256 }, (_, at) => [
        `${crypto.randomUUID()}${crypto.randomUUID()}${crypto.randomUUID()}${at}`,
        at,
      ]),
    );
    await a.reports.accept('n1', { epoch: 'e', revision: 1, report: reportOf('big', { drops }) });
    await until('it is at the other', () => versionAt(b, 'n1') === 'big');
    expect(Object.keys(b.reports.report('n1')!.report.drops)).toHaveLength(256);
    const [entry] = await redis.client.xrevrange(KEY('reports'), '+', '-', 'COUNT', 1);
    expect(JSON.stringify(entry).length).toBeLessThan(2000);
  });

  it('are read anew where entries of the stream were trimmed meanwhile', async () => {
    await using a = startReplica(redis.port);
    await using b = startReplica(redis.port, { followEveryMs: 400 });
    await Promise.all([hasView(a), hasView(b)]);
    await sleep(500);
    await a.reports.accept('n1', whole(1, 'e', 'first'));
    await a.reports.accept('n2', whole(1, 'e', 'second'));
    await redis.client.xtrim(KEY('reports'), 'MAXLEN', 0);
    await a.reports.accept('n3', whole(1, 'e', 'third'));
    const all = ['n1', 'n2', 'n3'];
    await until('all are there', () => all.every((node) => b.reports.report(node)));
    expect(all.map((node) => versionAt(b, node))).toEqual(['first', 'second', 'third']);
  });
});

/** A dashboard that applies what it gets, and looks at each position. */
const follower = () => {
  let at: string | undefined;
  let view: JsonObject = {};
  const sequences: number[] = [];
  const sequenceOf = (position: string) => Number(position.split('-')[1]);
  return {
    sequences,
    get at() {
      return at;
    },
    view: () => view,
    take(stream: ViewStream) {
      const missed = at === undefined ? undefined : stream.since(at);
      if (missed === undefined) {
        const current = stream.current()!;
        at = current.position;
        view = current.view as unknown as JsonObject;
        sequences.push(sequenceOf(at));
        return 'whole';
      }
      for (const { position, patch } of missed) {
        at = position;
        view = applyMergePatch(view, patch as JsonObject) as JsonObject;
        sequences.push(sequenceOf(position));
      }
      return 'updates';
    },
  };
};

describe('the view', () => {
  it('goes on for a client from replica to replica, also when the composer ends: 200 updates, none missing, none twice', async () => {
    let version = 0;
    const init = { composeEveryMs: 5, followEveryMs: 2 };
    const replicas = [startReplica(redis.port, init), startReplica(redis.port, init), startReplica(redis.port, init)];
    await Promise.all(replicas.map(hasView));
    const client = follower();
    expect(client.take(replicas[0]!.view)).toBe('whole');
    let ended = 0;
    const deadline = performance.now() + 40_000;
    while (client.sequences.length < 201 && performance.now() < deadline) {
      const replica = replicas[version % replicas.length]!;
      await replica.reports.accept('n1', whole(++version, 'e', `v${version}`));
      if (version % 40 === 0 && ended < 2) {
        const composers = await Promise.all(replicas.map((one) => one.metric('unbounded_status_composer')));
        const [composer] = replicas.splice(Math.max(0, composers.indexOf(1)), 1);
        await composer!.part.stop();
        replicas.push(startReplica(redis.port, init));
        await hasView(replicas.at(-1)!);
        ended++;
      }
      await sleep(8);
      expect(client.take(replicas[(version + 1) % replicas.length]!.view)).toBe('updates');
    }
    const first = client.sequences[0]!;
    expect(ended).toBe(2);
    expect(client.sequences.slice(0, 201)).toEqual(Array.from({ length: 201 }, (_, at) => first + at));
    await until(
      'all are at the same position',
      () => new Set(replicas.map(({ view }) => view.current()!.position)).size === 1,
    );
    client.take(replicas[0]!.view);
    expect(client.view()).toEqual(replicas[1]!.view.current()!.view);
    expect(await redis.client.xlen(KEY('view'))).toBeLessThanOrEqual(200);
    for (const replica of replicas) await replica.part.stop();
  });

  it('keeps since when a node is silent, when the next composer has just started', async () => {
    const problemsOf = ({ view }: { view: ViewStream }) => view.current()?.view.problems ?? {};
    await using a = startReplica(redis.port);
    await hasView(a);
    await a.reports.accept('n1', whole());
    await until('its report is there', () => a.view.current()!.view.nodes['n1']?.state === 'Healthy');
    const before = problemsOf(a);
    expect(Object.values(before).map(({ name }) => name)).toEqual(expect.arrayContaining(['n2', 'n3']));
    const fresh = (): ReturnType<typeof inputsOf> => {
      const inputs = inputsOf();
      return { ...inputs, nodes: inputs.nodes.map((node) => ({ ...node, knownMs: 0 })) };
    };
    await using b = startReplica(redis.port, { objects: fresh });
    await hasView(b);
    await a.part.stop();
    await until('the next one composes', async () => (await b.metric('unbounded_status_composer')) === 1);
    await b.reports.accept('n1', whole(2, 'e', 'v2'));
    await until('a view of its own', () => b.view.current()!.view.nodes['n1']?.agentVersion === 'v2');
    expect(problemsOf(b)).toEqual(before);
    expect(b.view.current()!.view.ended).toEqual(a.view.current()!.view.ended);
  });

  it('is told to the clients of every replica in order', async () => {
    await using a = startReplica(redis.port);
    await using b = startReplica(redis.port);
    await Promise.all([hasView(a), hasView(b)]);
    const from = b.told.length;
    for (let revision = 1; revision <= 5; revision++) {
      await a.reports.accept('n2', whole(revision, 'e', `v${revision}`));
      await until('the view has it', () => b.view.current()!.view.nodes['n2']?.agentVersion === `v${revision}`);
    }
    const numbers = b.told.slice(from).map(({ position }) => Number(position.split('-')[1]));
    expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at));
    expect(numbers.length).toBeGreaterThanOrEqual(5);
  });

  it('cannot be appended to by a composer that lost its lease while it was frozen', async () => {
    await using a = startReplica(redis.port);
    await hasView(a);
    await until('it composes', async () => (await a.metric('unbounded_status_composer')) === 1);
    // As it is for one that sleeps longer than its lease: it goes on in the belief that it composes.
    const link = createRedisLink({
      ...{ address: addressOf(redis.port), passwordFile: undefined, caFile: undefined, logger: silentLogger },
      metrics: redisMetrics(createMetrics()),
    });
    link.connect();
    await until('the connection', () => link.isUp);
    const keys = redisKeys('test');
    const skipped = () => {};
    const store = createViewStore(link, keys, { reports: createReportStore(link, keys, skipped), skipped });
    await redis.client.del(KEY('lease'));
    const frozen = createReplicatedView({
      store,
      metrics: { skipped, composing: skipped },
      now: () => new Date(),
      logger: silentLogger,
      leaseMs: 60_000,
    });
    await a.part.stop();
    await frozen.load(await store.tip(), await link.serverId());
    const append = vi.spyOn(store, 'append').mockImplementationOnce(async (composed) => {
      // Frozen, between the lease and what it writes.
      await redis.client.set(KEY('lease'), 'another', 'PX', 60_000);
      return store.append(composed);
    });
    const before = await redis.client.hget(KEY('snapshot'), 'p');
    const inputs = { ...inputsOf(['n1']), reports: new Map() };
    expect(await frozen.compose(inputs)).toBe('not-composer');
    expect(append).toHaveBeenCalledTimes(2);
    expect(await frozen.compose(inputs)).toBe('not-composer');
    expect(await redis.client.hget(KEY('snapshot'), 'p')).toBe(before);
    expect(await redis.client.get(KEY('lease'))).toBe('another');
    await frozen.release();
    expect(await redis.client.get(KEY('lease'))).toBe('another');
    await redis.client.del(KEY('lease'));
    expect(await frozen.compose(inputs)).toBe('changed');
    link.close();
  });

  it('is made by another replica when the composer cannot', async () => {
    let isBroken = false;
    const broken = { ...inputsOf(), sites: undefined as never };
    await using a = startReplica(redis.port, { objects: () => (isBroken ? broken : inputsOf()), leaseMs: 60_000 });
    await until('it composes', async () => (await a.metric('unbounded_status_composer')) === 1);
    await using b = startReplica(redis.port, { leaseMs: 60_000 });
    await hasView(b);
    isBroken = true;
    await until('the other one composes', async () => (await b.metric('unbounded_status_composer')) === 1);
    await b.reports.accept('n1', whole());
    await until('the view is renewed for both', () =>
      [a, b].every(({ view }) => view.current()?.view.nodes['n1']?.state === 'Healthy'),
    );
    expect(await a.metric('unbounded_status_composer')).toBe(0);
  });

  it('is made by another replica when the composer has lost the API server; and by one of them when all have', async () => {
    const lostMs = [0, 0];
    const replicaOf = (index: number) =>
      startReplica(redis.port, { objects: () => ({ ...inputsOf(), lostMs: lostMs[index]! }), leaseMs: 60_000 });
    await using a = replicaOf(0);
    await until('it composes', async () => (await a.metric('unbounded_status_composer')) === 1);
    await using b = replicaOf(1);
    await hasView(b);
    lostMs[0] = 20_000;
    await until('the other one composes', async () => (await b.metric('unbounded_status_composer')) === 1);
    expect(await a.metric('unbounded_status_composer')).toBe(0);
    expect(b.view.current()?.view.objectsTime).toBeUndefined();
    lostMs[1] = 20_000;
    await until('both replicas say so', () =>
      [a, b].every(({ view }) => view.current()?.view.objectsTime !== undefined),
    );
    await b.reports.accept('n1', whole());
    await until('the view goes on', () => a.view.current()?.view.nodes['n1']?.state === 'Healthy');
  });

  it('begins a new history when somebody deletes it from Redis', async () => {
    await using a = startReplica(redis.port);
    const { position } = await hasView(a);
    await redis.client.del(KEY('view'), KEY('snapshot'));
    await a.reports.accept('n1', whole());
    await until('another history', () => a.view.current()!.position.split('-')[0] !== position.split('-')[0]);
    expect(a.view.since(position)).toBeUndefined();
    expect(a.told.at(-1)!.patch === undefined || a.told.some(({ patch }) => patch === undefined)).toBe(true);
  });
});

describe('what others write to Redis', () => {
  const head = (order: number, revision = 1) => Buffer.from(`v1\n${order}\n1700000000000\n"e"\n${revision}\n`);
  const bomb = gzipSync(Buffer.alloc(200 * 1024 * 1024), { level: 9 });
  const good = gzipSync(JSON.stringify(reportOf()));

  it('as reports is passed over, counted, and never a report', async () => {
    const bad: [string, Buffer][] = [
      ['n1', Buffer.from('not ours')],
      ['n2', Buffer.concat([head(5), Buffer.from('no gzip')])],
      ['n3', Buffer.concat([head(6), bomb])],
      ['n4', Buffer.concat([head(7), gzipSync('{"agentVersion":7}')])],
      ['../../etc', Buffer.concat([head(8), good])],
      ['a/b', Buffer.concat([head(9), good])],
      ['n5', Buffer.alloc(8 * 1024 * 1024)],
      ['x'.repeat(1000), Buffer.from('x')],
    ];
    for (const [name, value] of bad) await redis.client.hset(KEY('held'), name, value);
    await redis.client.hset(KEY('held'), 'n6', Buffer.concat([head(1), good]));
    await redis.client.set(KEY('count'), 100);
    await using a = startReplica(redis.port, { objects: () => inputsOf(['n6']) });
    await hasView(a);
    expect([...a.reports.received().keys()]).toEqual(['n6']);
    expect(await a.metric('unbounded_status_redis_skipped_total{kind="report"}')).toBeGreaterThanOrEqual(bad.length);
    expect(await a.reports.accept('n1', whole())).toBe('accepted');
    expect(await a.reports.accept('n3', delta(1, {}))).toBe('resync');
  });

  it('into the streams is passed over, and what follows is not', async () => {
    await using a = startReplica(redis.port);
    const { position } = await hasView(a);
    const [history, sequence] = position.split('-');
    const next = `${history}-${Number(sequence) + 1}`;
    await redis.client.xadd(KEY('reports'), '*', 'foreign', 'entry');
    await redis.client.xadd(KEY('reports'), '*', 'n', 'n1', 'd', Buffer.alloc(64 * 1024 * 1024));
    await redis.client.xadd(
      KEY('reports'),
      '*',
      ...['n', 'a/b', 'e', '"e"', 'r', '1', 'b', '', 't', '1', 'q', '1'],
      'd',
      good,
    );
    await redis.client.xadd(
      KEY('reports'),
      '*',
      ...['n', 'n1', 'e', '"e"', 'r', '1', 'b', '', 't', '9e99', 'q', '1'],
      'd',
      good,
    );
    await redis.client.xadd(KEY('view'), '*', 'p', 'nonsense', 'd', 'x');
    await redis.client.xadd(KEY('view'), '*', 'p', next, 'd', bomb);
    await redis.client.xadd(KEY('view'), '*', 'p', next, 'd', gzipSync('{"summary":null}'));
    await a.reports.accept('n1', whole());
    await until('the report is in the view', () => a.view.current()!.view.nodes['n1']?.state === 'Healthy');
    expect(await a.metric('unbounded_status_redis_skipped_total{kind="report-entry"}')).toBeGreaterThanOrEqual(3);
    expect(await a.metric('unbounded_status_redis_skipped_total{kind="view-entry"}')).toBeGreaterThanOrEqual(2);
    expect(a.view.current()!.view.summary.nodes).toBe(3);
  });

  it('as the view is passed over: a new history begins', async () => {
    await redis.client.hset(KEY('snapshot'), { p: 'evil-7', r: 'x', d: bomb });
    await redis.client.xadd(KEY('view'), '*', 'p', 'evil-8', 'd', gzipSync('{"summary":{"nodes":9}}'));
    await using a = startReplica(redis.port);
    const { position, view } = await hasView(a);
    expect(position).toMatch(/^[0-9a-f]{8}-\d+$/);
    expect(view.summary.nodes).toBe(3);
  });

  it('as an update that follows does not stop the view for good', async () => {
    await using a = startReplica(redis.port);
    const { position } = await hasView(a);
    const [history, sequence] = position.split('-');
    const forged = gzipSync('{"summary":{"nodes":99}}');
    await redis.client.xadd(KEY('view'), '*', 'p', `${history}-${Number(sequence) + 1}`, 'd', forged);
    await until('it was taken', () => a.told.some(({ patch }) => JSON.stringify(patch)?.includes('99')));
    await until('the view is right again', () => a.view.current()!.view.summary.nodes === 3);
    expect(a.view.since(position)).toBeUndefined();
  });
});
