import { expect, test } from 'vitest';
import type { PathReport } from './messages.ts';
import { listed, moveText, summarize } from './moves.ts';

const report: PathReport = {
  device: 'wg51820',
  publicKey: 'B',
  node: 'b',
  path: 'relay',
  from: 'direct',
  reason: 'unanswered',
  endpoint: '127.0.0.1:40000',
  takenAtMs: 1,
};

test('a move in words has peer, interface, both paths and the reason', () => {
  expect(moveText(report)).toBe('path to b (wg51820) changed from direct to the relay: probes were not answered');
  expect(moveText({ ...report, from: 'relay', path: 'direct', reason: 'validated' })).toBe(
    'path to b (wg51820) changed from the relay to direct: probes were answered both ways',
  );
});

test('the summary counts all and names those on the relay; without any there is none', () => {
  expect(summarize([])).toBeUndefined();
  expect(summarize([report, { ...report, node: 'c', path: 'direct' }])).toEqual({
    total: 2,
    relayed: ['b (wg51820: probes were not answered)'],
  });
});

test('a list is as long as people read', () => {
  expect(listed(['a', 'b'], ', ')).toBe('a, b');
  expect(listed(['a', 'b', 'c', 'd', 'e', 'f', 'g'], '; ')).toBe('a; b; c; d; e; and 2 more');
});
