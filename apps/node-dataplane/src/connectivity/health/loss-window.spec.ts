import { expect, test } from 'vitest';
import { createLossWindow } from './loss-window.ts';

const ratioOf = (losses: readonly boolean[]): number | undefined => {
  const window = createLossWindow();
  for (const isLost of losses) window.add(isLost);
  return window.ratio();
};
const times = (count: number, isLost: boolean): boolean[] => Array.from({ length: count }, () => isLost);

test.each([
  ['of no probes is not known', [], undefined],
  ['of one that was answered is 0', [false], 0],
  ['of one that was lost is 1', [true], 1],
  ['of few probes counts these alone', [true, false, false, false], 0.25],
  ['of 32 lost ones is 1, the sign bit among them', times(32, true), 1],
  ['forgets what is older than 32 probes', [...times(40, true), ...times(32, false)], 0],
  ['is of the last 32', [...times(100, false), ...times(8, true)], 0.25],
])('the share %s', (_, losses, ratio) => {
  expect(ratioOf(losses)).toBe(ratio);
});
