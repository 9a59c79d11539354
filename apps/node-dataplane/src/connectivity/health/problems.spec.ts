import { expect, test } from 'vitest';
import type { PeerState } from '@unbounded/health';
import { healthProblems } from './problems.ts';

const peer = (node: string, state: PeerState, graceOver = true) => ({
  node,
  family: 4 as const,
  state,
  graceOver,
  knowsNextKey: false,
});

test('peers that answer, or still may, are no problem', () => {
  expect(healthProblems([peer('a', 'Healthy'), peer('b', 'Degraded'), peer('c', 'New', false)])).toEqual([]);
});

test('peers that do not answer are told of in one text', () => {
  expect(healthProblems([peer('b', 'Unhealthy'), peer('a', 'New'), peer('c', 'Healthy')])).toEqual([
    { reason: 'PeersUnhealthy', message: '2 of 3 probed paths do not answer: a (IPv4), b (IPv4)' },
  ]);
});

test('of very many the first few are named', () => {
  const many = Array.from({ length: 50 }, (_, index) => peer(`n${String(index).padStart(2, '0')}`, 'Unhealthy'));
  expect(healthProblems(many)[0]!.message).toBe(
    '50 of 50 probed paths do not answer: n00 (IPv4), n01 (IPv4), n02 (IPv4), n03 (IPv4), n04 (IPv4) and 45 more',
  );
});
