import { expect, test } from 'vitest';
import { createLocalForwarding } from '../forwarding/local-forwarding.ts';
import { forwardingOf } from '../forwarding/forwarding.testdata.ts';
import type { ForwardingStore } from './forwarding-store.ts';
import { createReplicatedForwarding } from './replicated-forwarding.ts';

const bed = (store: Partial<ForwardingStore> = {}) => {
  const state = { isUp: true, nowMs: 0, asked: 0, put: [] as string[] };
  const elapsed = (): number => state.nowMs;
  const exchange = createReplicatedForwarding({
    store: {
      want: async () => ({}),
      wanted: async () => {
        state.asked++;
        return new Set(['n1']);
      },
      put: async (node) => void state.put.push(node),
      ...store,
    },
    local: createLocalForwarding(elapsed),
    isUp: () => state.isUp,
    elapsed,
  });
  return { exchange, state };
};

test('pushes of all nodes together ask Redis once a second who is wanted', async () => {
  const { exchange, state } = bed();
  const answers = await Promise.all(Array.from({ length: 100 }, (_, at) => exchange.isWanted(`n${at}`)));
  expect(answers.flatMap((isWanted, at) => (isWanted ? [at] : []))).toEqual([1]);
  expect(state.asked).toBe(1);
  state.nowMs = 1000;
  await exchange.isWanted('n1');
  expect(state.asked).toBe(2);
});

test('while Redis is away a node that pushes here is asked, and no other', async () => {
  const { exchange, state } = bed();
  await exchange.isWanted('n2');
  state.isUp = false;
  expect([await exchange.want('n1'), await exchange.want('n2')]).toEqual(['away', {}]);
  expect(await exchange.isWanted('n2')).toBe(true);
  await exchange.answer('n2', forwardingOf());
  expect(await exchange.want('n2')).toMatchObject({ answer: { ageMs: 0 } });
  expect(state.put).toEqual([]);
  state.nowMs = 26_000; // it pushes to another replica by now, or not at all
  expect(await exchange.want('n2')).toBe('away');
});

test('a Redis that fails at a question is as one that is away, and fails no push', async () => {
  const fail = async (): Promise<never> => {
    throw new Error('OOM');
  };
  const { exchange } = bed({ want: fail, wanted: fail, put: fail });
  expect(await exchange.isWanted('n1')).toBe(false);
  expect(await exchange.want('n1')).toEqual({});
  expect(await exchange.want('n9')).toBe('away');
  await exchange.answer('n1', forwardingOf());
  expect(await exchange.want('n1')).toMatchObject({ answer: { ageMs: 0 } });
});
