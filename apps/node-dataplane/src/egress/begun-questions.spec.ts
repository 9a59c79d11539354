import { expect, test, vi } from 'vitest';
import type { PodAttachment } from '../attachment/pods.ts';
import { createBegunQuestions } from './begun-questions.ts';

const pod = (containerId: string): PodAttachment => ({
  ...{ namespace: 'default', name: containerId, uid: containerId, containerId, interface: 'eth0', hostVeth: undefined },
  ...{ netns: `/run/netns/${containerId}`, addresses: [] },
});

test('the answer is of the question that was begun, and is taken once', async () => {
  const ask = vi.fn(async ({ uid }: PodAttachment) => uid);
  const questions = createBegunQuestions(ask);
  questions.begin(pod('a'));
  questions.begin(pod('b'));
  await expect(questions.take(pod('a'))).resolves.toBe('a');
  expect(questions.take(pod('a'))).toBeUndefined();
  expect(ask).toHaveBeenCalledTimes(2);
});

test('an ADD that comes again has the answer to its own question, not to that of the time before', async () => {
  let turn = 0;
  const questions = createBegunQuestions(async () => ++turn);
  questions.begin(pod('a'));
  questions.begin(pod('a'));
  await expect(questions.take(pod('a'))).resolves.toBe(2);
});

test('what cannot be answered is told by who takes it, and by nobody before', async () => {
  const questions = createBegunQuestions(() => Promise.reject(new Error('no API server')));
  questions.begin(pod('a'));
  await new Promise((resolve) => setImmediate(resolve));
  await expect(questions.take(pod('a'))).rejects.toThrow('no API server');
});

test('of pods that got no port the newest questions are kept', async () => {
  const questions = createBegunQuestions(async ({ uid }) => uid, { most: 2 });
  for (const name of ['a', 'b', 'c']) questions.begin(pod(name));
  expect(questions.take(pod('a'))).toBeUndefined();
  await expect(questions.take(pod('c'))).resolves.toBe('c');
});

test('an answer that was begun long ago does not count', () => {
  let nowMs = 0;
  const questions = createBegunQuestions(async ({ uid }) => uid, { now: () => nowMs });
  for (const name of ['a', 'b']) questions.begin(pod(name));
  nowMs = 999;
  expect(questions.take(pod('a'))).toBeDefined();
  nowMs = 1000;
  expect(questions.take(pod('b'))).toBeUndefined();
});
