import { describe, expect, test } from 'vitest';
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

describe('echoes', () => {
  const gateway = (node: string, forwards: boolean, state: PeerState = 'Healthy') => ({
    ...peer(node, state),
    forwards,
  });
  const reasons = (...peers: Parameters<typeof healthProblems>[0]): string[] =>
    healthProblems(peers).map(({ reason }) => reason);

  test('that some gateways return say that the others do not forward', () => {
    const [problem, ...rest] = healthProblems([gateway('g1', true), gateway('g2', false), peer('w', 'Healthy')]);
    expect(problem!.reason).toBe('GatewayNotForwarding');
    expect(problem!.message).toMatch(/^1 of 2 ways by gateways .* return no echo, and are not used: g2 \(IPv4\)/);
    expect(rest).toEqual([]);
  });

  test('that none returns say nothing of the gateways', () => {
    expect(reasons(gateway('g1', false), gateway('g2', false))).toEqual([]);
  });

  test('are told of by family', () => {
    const six = { ...gateway('g1', false), family: 6 as const };
    expect(reasons(gateway('g1', true), gateway('g2', true), six)).toEqual([]);
    expect(reasons(gateway('g1', true), { ...six, node: 'g2', forwards: true }, six)).toEqual(['GatewayNotForwarding']);
  });

  test('of a gateway that does not answer say nothing more', () => {
    expect(reasons(gateway('g1', false, 'Unhealthy'), gateway('g2', true))).toEqual(['PeersUnhealthy']);
  });
});
