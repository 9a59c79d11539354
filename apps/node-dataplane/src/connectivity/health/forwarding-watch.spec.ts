import { createLogger, createMetrics } from '@unbounded/telemetry';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { planFor } from '../../testdata.ts';
import { createForwardingWatch, type ForwardingWatch } from './forwarding-watch.ts';
import type { PeerReport } from './messages.ts';

/** When echoes are traced: of nftables only the calls count here. */

let traces: number;
let watch: ForwardingWatch;
const plan = planFor('g1');

beforeEach(() => {
  vi.useFakeTimers();
  traces = 0;
  watch = createForwardingWatch({
    nft: {
      replaceTable: async () => void traces++,
      deleteTable: async () => true,
      traceDrops: () => ({ close: () => undefined, [Symbol.dispose]: () => undefined }),
      ruleComment: async () => undefined,
    },
    metrics: createMetrics(),
    logger: createLogger({ name: 'test', destination: { write: () => undefined } }),
    onFound: () => undefined,
  });
});
afterEach(() => {
  watch.stop();
  vi.useRealTimers();
});

const deaf = (node: string): PeerReport => ({
  ...{ node, family: 4, state: 'Healthy', graceOver: true, knowsNextKey: false },
  missesEchoes: 'here',
});
const told = (...peers: readonly PeerReport[]): string => watch.look(plan, peers).condition?.message ?? 'nothing';
const TRACED_MS = 5000;

test('a fault is traced once, and not again for half a minute', async () => {
  expect(told(deaf('w1'), deaf('w2'))).toContain('is being looked for');
  await vi.advanceTimersByTimeAsync(TRACED_MS);
  expect(told(deaf('w1'), deaf('w2'))).toContain('no nftables table here drops them');
  expect(traces).toBe(1);
  await vi.advanceTimersByTimeAsync(30_000);
  told(deaf('w1'), deaf('w2'));
  expect(traces).toBe(2);
});

test('what was traced for one peer alone is traced anew at once when others say so', async () => {
  expect(told(deaf('w1'))).toBe('nothing');
  await vi.advanceTimersByTimeAsync(TRACED_MS);
  expect(told(deaf('w1'))).toBe('nothing');
  expect(traces).toBe(1);
  expect(told(deaf('w1'), deaf('w2'))).toContain('is being looked for');
  expect(traces).toBe(2);
  await vi.advanceTimersByTimeAsync(TRACED_MS);
  expect(told(deaf('w1'), deaf('w2'))).toContain('no nftables table here drops them');
  expect(traces).toBe(2);
});

test('it is traced anew when the trace for one peer alone was still running', async () => {
  told(deaf('w1'));
  expect(told(deaf('w1'), deaf('w2'))).toContain('is being looked for');
  expect(traces).toBe(1);
  await vi.advanceTimersByTimeAsync(TRACED_MS);
  expect(told(deaf('w1'), deaf('w2'))).toContain('is being looked for');
  expect(traces).toBe(2);
});
