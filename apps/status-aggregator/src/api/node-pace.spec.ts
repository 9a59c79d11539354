import { expect, test } from 'vitest';
import { createNodePace } from './node-pace.ts';

const done = async (): Promise<string> => 'done';

test('a node has one report under way; others are not held up by it', async () => {
  const pace = createNodePace({ elapsed: () => 0 });
  const { promise, resolve } = Promise.withResolvers<string>();
  const slow = pace.run('a', () => promise);
  await expect(pace.run('a', done)).rejects.toMatchObject({ reason: 'TooManyReports' });
  expect(await pace.run('b', done)).toBe('done');
  resolve('slow');
  expect(await slow).toBe('slow');
  expect(await pace.run('a', done)).toBe('done');
});

test('a node that reports ever again is refused, and may go on at its pace', async () => {
  let nowMs = 0;
  const pace = createNodePace({ elapsed: () => nowMs });
  for (let at = 0; at < 10; at++) await pace.run('a', done);
  await expect(pace.run('a', done)).rejects.toThrow('this node reports more often than 2 times a second');
  expect(await pace.run('b', done)).toBe('done');
  nowMs = 500;
  expect(await pace.run('a', done)).toBe('done');
  await expect(pace.run('a', done)).rejects.toMatchObject({ reason: 'TooManyReports' });
});

test('a report that fails holds up no later one', async () => {
  const pace = createNodePace({ elapsed: () => 0 });
  await expect(pace.run('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect(await pace.run('a', done)).toBe('done');
});
