import { formatPrefix } from '@unbounded/ip';
import { ApiError, type ServiceCidr } from '@unbounded/kube';
import { silentLogger } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

import { createServiceCidrs, readServiceCidrs } from './service-cidrs.ts';

const LOOK_MS = 30_000;
const cidr = (...cidrs: string[]): ServiceCidr => ({ metadata: { name: 'kubernetes' }, spec: { cidrs } });
const refusal = (status: number) => new ApiError('list servicecidrs', status, { message: 'no' });

let answer: () => ServiceCidr[];
const client = { listAll: async () => answer() };
const create = () => {
  const cidrs = createServiceCidrs({ client, key: 'cluster', logger: silentLogger });
  const asked: string[] = [];
  cidrs.source.connect((key) => asked.push(key));
  return { cidrs, asked, texts: () => cidrs.list()?.map(formatPrefix) };
};

beforeEach(() => {
  vi.useFakeTimers();
  answer = () => [cidr('10.96.0.0/12', 'fd00:10:96::/112')];
});
afterEach(() => vi.useRealTimers());

test('blocks of Services are those of the API server; a change asks for a plan', async () => {
  const { cidrs, asked, texts } = create();
  expect(texts()).toBeUndefined();
  await cidrs.part.start();
  await vi.advanceTimersByTimeAsync(0);
  expect([texts(), asked]).toEqual([['10.96.0.0/12', 'fd00:10:96::/112'], ['cluster']]);
  await vi.advanceTimersByTimeAsync(LOOK_MS);
  expect(asked).toHaveLength(1);
  answer = () => [cidr('10.96.0.0/12'), cidr('10.112.0.0/12')];
  await vi.advanceTimersByTimeAsync(LOOK_MS);
  expect([texts(), asked.length]).toEqual([['10.96.0.0/12', '10.112.0.0/12'], 2]);
  await cidrs.part.stop();
});

test('a server that does not have the kind names none, and nobody waits for it', async () => {
  answer = () => {
    throw refusal(404);
  };
  const { cidrs, texts } = create();
  await cidrs.part.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(texts()).toEqual([]);
  await cidrs.part.stop();
  expect(await readServiceCidrs(client)).toEqual([]);
});

test('a server that does not answer is asked again, and until then nothing is known', async () => {
  const answers = answer;
  answer = () => {
    throw refusal(503);
  };
  const { cidrs, texts } = create();
  await cidrs.part.start();
  await vi.advanceTimersByTimeAsync(0);
  expect(texts()).toBeUndefined();
  answer = answers;
  await vi.advanceTimersByTimeAsync(1000);
  expect(texts()).toHaveLength(2);
  await cidrs.part.stop();
});

test('blocks that were known stay so when they may not be read any more', async () => {
  const { cidrs, texts } = create();
  await cidrs.part.start();
  await vi.advanceTimersByTimeAsync(0);
  answer = () => {
    throw refusal(403);
  };
  await vi.advanceTimersByTimeAsync(LOOK_MS);
  expect(texts()).toHaveLength(2);
  await cidrs.part.stop();
});
