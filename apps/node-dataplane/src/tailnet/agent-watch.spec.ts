import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';
import { createAgentWatch } from './agent-watch.ts';

const bed = () => {
  const state = { answers: false, looks: 0, triggers: 0 };
  const watch = createAgentWatch({
    agent: {
      check: async () => {
        state.looks += 1;
        if (!state.answers) throw new Error('no answer');
        return { healthy: false, message: 'pod not found' };
      },
    },
    ...{ socketPath: '/run/daemon.sock', trigger: () => void (state.triggers += 1), lookAfterMs: 5 },
  });
  return { state, watch };
};

test('nobody looks while no pod waits', async () => {
  const { state, watch } = bed();
  expect(await watch.problems()).toEqual([]);
  await watch.during('shop/web', async () => undefined);
  expect([await watch.problems(), watch.isLooking, state]).toEqual([
    [],
    false,
    { answers: false, looks: 0, triggers: 0 },
  ]);
});

test('pods that wait for an agent that does not answer are a problem, also between two attempts, until it answers', async () => {
  const { state, watch } = bed();
  const gate = Promise.withResolvers<void>();
  const waiting = ['a', 'b', 'c', 'd'].map((name) => watch.during(`shop/${name}`, () => gate.promise));
  await until('a look is due', () => state.triggers > 0);
  const problem = {
    reason: 'TailnetAgentUnavailable',
    message: expect.stringMatching(
      /does not answer at \/run\/daemon\.sock, and .*shop\/a, shop\/b, shop\/c and 1 more/,
    ),
  };
  expect(await watch.problems()).toEqual([problem]);
  gate.resolve();
  await Promise.all(waiting);
  expect([await watch.problems(), watch.isLooking]).toEqual([[problem], true]);
  state.answers = true;
  expect([await watch.problems(), watch.isLooking]).toEqual([[], false]);
});

test('a pod that waits for its device alone is no problem', async () => {
  const { state, watch } = bed();
  state.answers = true;
  void watch.during('shop/web', () => new Promise(() => undefined));
  expect([await watch.problems(), watch.isLooking]).toEqual([[], true]);
});
