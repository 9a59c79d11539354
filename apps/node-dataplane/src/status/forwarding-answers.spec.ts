import { setTimeout as sleep } from 'node:timers/promises';
import type { Forwarding } from '@unbounded/status';
import { silentLogger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';
import { createForwardingAnswers, type ForwardingAnswersOptions } from './forwarding-answers.ts';

const forwarding: Forwarding = { readTime: 't', dataplane: 'ebpf', total: 0, different: 0, entries: [] };

const open = (over: Partial<ForwardingAnswersOptions> = {}) => {
  const sent: Forwarding[] = [];
  let reads = 0;
  const answers = createForwardingAnswers({
    read: async () => {
      reads++;
      return forwarding;
    },
    send: async (one) => void sent.push(one),
    logger: silentLogger,
    ...over,
  });
  return { answers, sent, reads: () => reads };
};

test('nothing is read before somebody waits for it, and then it is read once and sent', async () => {
  const { answers, sent, reads } = open();
  expect(reads()).toBe(0);
  answers.wanted();
  await until('it is sent', () => sent.length === 1);
  expect([reads(), sent]).toEqual([1, [forwarding]]);
});

test('whatever the aggregator says, it is read once in its time, and never twice at once', async () => {
  const { answers, sent, reads } = open({ spacingMs: 60_000 });
  for (let time = 0; time < 5; time++) answers.wanted();
  await until('it is sent', () => sent.length === 1);
  answers.wanted();
  await sleep(20);
  expect(reads()).toBe(1);
  const slow = Promise.withResolvers<undefined>();
  let calls = 0;
  const busy = open({ spacingMs: 0, read: async () => (calls++, slow.promise) as unknown as Promise<Forwarding> });
  for (let time = 0; time < 5; time++) busy.answers.wanted();
  await sleep(20);
  expect(calls).toBe(1);
  slow.resolve(undefined);
});

test('what cannot be read or sent is tried again when it is asked for again', async () => {
  let fails = true;
  const sent: Forwarding[] = [];
  const send = async (one: Forwarding): Promise<void> => {
    if (fails) throw new Error('refused');
    sent.push(one);
  };
  const { answers, reads } = open({ spacingMs: 0, send });
  answers.wanted();
  await until('it was read', () => reads() === 1);
  await sleep(10);
  fails = false;
  answers.wanted();
  await until('it is sent', () => sent.length === 1);
  expect(reads()).toBe(2);
});

test('an agent whose sections have nothing to read sends nothing, and one that ends begins nothing', async () => {
  const nothing = open({ read: () => undefined });
  nothing.answers.wanted();
  await nothing.answers.stop();
  const ended = open();
  await ended.answers.stop();
  ended.answers.wanted();
  await sleep(10);
  expect([nothing.sent, ended.reads()]).toEqual([[], 0]);
});
