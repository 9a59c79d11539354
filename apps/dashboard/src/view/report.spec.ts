import type { NodeReport } from '@unbounded/status';
import { expect, test } from 'vitest';
import { groupRows, lossOf, mtuOf, pathsOf, peerRows, rttOf, sessionRows, worstOf } from './report.ts';

const REPORT: NodeReport = {
  ...{ agentVersion: '1', isComplete: true, problems: [], drops: {} },
  connectivity: {
    ...{ site: 's1', role: 'worker', dataplane: 'ebpf' },
    peers: {
      a: {
        protocol: 'WireGuard',
        health: {
          ipv4: { state: 'Healthy', rttMs: 1, pathMtuBytes: 1400 },
          ipv6: { state: 'Unhealthy', rttMs: 9, pathMtuBytes: 1280, lossRatio: 1 },
        },
        wireGuard: { wg0: { rxBytes: 1, txBytes: 2, path: 'Relayed' }, wg1: { rxBytes: 0, txBytes: 0 } },
      },
      b: { protocol: 'GENEVE', health: {}, wireGuard: {} },
    },
    groups: {
      g: {
        ...{ site: 's2', family: 'IPv4' },
        members: {
          z: { tier: 1, isActive: false, reachesSite: false },
          y: { tier: 0, isActive: false },
          x: { tier: 0, isActive: true },
        },
      },
    },
  },
};

test('of both families the worse one counts, and what is not known stays so', () => {
  const [a, b] = peerRows(REPORT);
  expect([worstOf(a!), rttOf(a!), mtuOf(a!), lossOf(a!), pathsOf(a!)]).toEqual([0, 9, 1280, 1, 'Direct and Relayed']);
  expect([worstOf(b!), rttOf(b!), mtuOf(b!), lossOf(b!), pathsOf(b!)]).toEqual([
    6,
    undefined,
    undefined,
    undefined,
    'no session',
  ]);
});

test('sessions are one for each interface', () => {
  expect(sessionRows(REPORT).map(({ id }) => id)).toEqual(['a wg0', 'a wg1']);
});

test('groups say who is active, and what is known of the others', () => {
  expect(groupRows(REPORT)).toEqual([
    { name: 'g', site: 's2', family: 'IPv4', active: ['x'], others: ['y (tier 0)', 'z (tier 1, says no)'] },
  ]);
});

test('a report without connectivity has no rows', () => {
  const { connectivity: _, ...rest } = REPORT;
  expect([peerRows(rest), sessionRows(rest), groupRows(rest)]).toEqual([[], [], []]);
});
