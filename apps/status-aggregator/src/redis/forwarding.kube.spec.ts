import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';
import { forwardingOf } from '../forwarding/forwarding.testdata.ts';
import { startTestRedis } from './redis-server.testdata.ts';
import { startReplica } from './replica.testdata.ts';

/** What nodes forward by, asked at one replica and answered at another. */

const ANSWER = 'unbounded:status:{test}:forwarding:n1';

test('a viewer of one replica has the answer of a node that pushes to another', async () => {
  await using redis = await startTestRedis();
  await using a = startReplica(redis.port);
  await using b = startReplica(redis.port);
  await until('both are there', () => a.view.current() && b.view.current());
  expect(await a.forwarding.want('n1')).toEqual({});
  expect(await b.forwarding.isWanted('n2')).toBe(false);
  await until('b knows', () => b.forwarding.isWanted('n1'));
  await b.forwarding.answer('n1', forwardingOf());
  await b.forwarding.answer('n2', forwardingOf()); // nobody asked
  const wanted = await a.forwarding.want('n1');
  const answer = typeof wanted === 'object' ? wanted.answer! : undefined;
  expect(JSON.parse(answer!.json.toString())).toEqual(forwardingOf());
  expect(answer!.ageMs).toBeLessThan(5000);
  expect(await a.forwarding.want('n2')).toEqual({});
  const lifetimes = [await redis.client.pttl('unbounded:status:{test}:wanted'), await redis.client.pttl(ANSWER)];
  for (const ms of lifetimes) expect(ms > 50_000 && ms <= 60_000, String(lifetimes)).toBe(true);
});

test('all replicas together ask so many nodes and no more, and what is over is forgotten', async () => {
  await using redis = await startTestRedis();
  await using a = startReplica(redis.port);
  await using b = startReplica(redis.port);
  await until('both are there', () => a.view.current() && b.view.current());
  for (let at = 0; at < 32; at++) expect(await [a, b][at % 2]!.forwarding.want(`n${at}`)).toEqual({});
  expect(await a.forwarding.want('n32')).toBe('tooMany');
  expect(await b.forwarding.want('n31')).toEqual({});
  await redis.client.zadd('unbounded:status:{test}:wanted', 1, 'n0'); // as if its time were over
  expect(await a.forwarding.want('n32')).toEqual({});
});

test('what others wrote in its place is passed over and counted', async () => {
  await using redis = await startTestRedis();
  await using a = startReplica(redis.port);
  await until('it is there', () => a.view.current());
  for (const value of ['none', 'v1\n1\nno gzip', 'x'.repeat(5 << 20)]) {
    await redis.client.set(ANSWER, value);
    expect(await a.forwarding.want('n1')).toEqual({});
  }
  expect(await a.metric('unbounded_status_redis_skipped_total{kind="forwarding"}')).toBe(2);
  await redis.client.del(ANSWER);
  await redis.client.lpush(ANSWER, 'a list');
  expect(await a.forwarding.want('n1')).toBe('away');
});

test('while Redis is away a node that pushes here can be asked, and no other', async () => {
  await using redis = await startTestRedis();
  await using a = startReplica(redis.port);
  await until('it is there', () => a.view.current());
  await a.forwarding.isWanted('n1');
  await redis.kill();
  await until('it is noticed', () => a.view.notices!().length === 1);
  expect([await a.forwarding.want('n1'), await a.forwarding.want('n2')]).toEqual([{}, 'away']);
  expect(await a.forwarding.isWanted('n1')).toBe(true);
});
