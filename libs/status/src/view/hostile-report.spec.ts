import { afterEach, describe, expect, it, vi } from 'vitest';
import { peerOf } from '../report.testdata.ts';
import type { GroupStatus } from '../report/connectivity-status.ts';
import { composeView } from './compose.ts';
import { nextHops } from './next-hops.ts';
import { clusterInputs, NOW, withReport } from './view.testdata.ts';

/** What a valid report may cost whoever composes the view. */

const GROUPS = 2000;
const member = { tier: 0, isActive: true } as const;

/** The node itself denies the site; then come nodes that are none, and last a gateway that carries. */
const members: GroupStatus['members'] = {
  w11: { ...member, reachesSite: false },
  ...Object.fromEntries(Array.from({ length: 63 }, (_, at) => [`invented${at}`, member])),
  g1: member,
};

const denyingInputs = (): ReturnType<typeof clusterInputs> => {
  const inputs = clusterInputs();
  const group: GroupStatus = { site: 's2', family: 'IPv4', members };
  withReport(inputs, 'w11', (status) => ({
    ...status,
    peers: { ...status.peers, w11: peerOf() },
    groups: Object.fromEntries(Array.from({ length: GROUPS }, (_, at) => [`g${at}`, group])),
  }));
  return inputs;
};

/** Counts look-ups in sets, and ends when there are more of them: millions would take their time to fail. */
const countLookUps = (most: number): { count: number } => {
  const counted = { count: 0 };
  const has = Reflect.get(Set.prototype, 'has') as (this: Set<unknown>, value: unknown) => boolean;
  vi.spyOn(Set.prototype, 'has').mockImplementation(function (this: Set<unknown>, value) {
    if (++counted.count > most) expect.fail(`more than ${most} look-ups`);
    return has.call(this, value);
  });
  return counted;
};

afterEach(() => vi.restoreAllMocks());

describe('a report of which each group denies the site first', () => {
  it('costs no more than the members that it has', () => {
    const inputs = denyingInputs();
    const lookUps = countLookUps(GROUPS);
    const view = composeView(inputs, undefined, NOW);
    expect(lookUps.count).toBeLessThan(GROUPS);
    expect(view.reach['s1']?.['s2']).toMatchObject({
      state: 'Reachable',
      nodes: 2,
      reaching: 2,
      via: ['g1', 'g2', 'w11'],
    });
  });

  it('asks a gateway for a site once, however often it is asked', () => {
    const inputs = clusterInputs();
    const read = vi.spyOn(inputs.reports, 'get');
    const hops = nextHops(inputs, (node) => inputs.nodes.find(({ name }) => name === node)?.site);
    for (let at = 0; at < GROUPS; at++) {
      expect(hops.carries('w11', 's2')).toBe(true);
      expect(hops.carries('w11', 'nowhere')).toBe(false);
      expect(hops.carries('nobody', 's2')).toBe(false);
    }
    expect(read).toHaveBeenCalledTimes(1);
  });
});

describe('groups of one site and family', () => {
  it('are one: a gateway of any of them carries, and each family needs its own', () => {
    const inputs = clusterInputs();
    const reaching = (...groups: readonly GroupStatus[]): number | undefined => {
      withReport(inputs, 'w11', (status) => ({ ...status, groups: Object.fromEntries(groups.entries()) }));
      return composeView(inputs, undefined, NOW).reach['s1']?.['s2']?.reaching;
    };
    const ofFamily = (family: GroupStatus['family'], ...nodes: readonly string[]): GroupStatus => ({
      site: 's2',
      family,
      members: Object.fromEntries(nodes.map((node) => [node, member])),
    });
    expect(reaching(ofFamily('IPv4', 'invented'), ofFamily('IPv4', 'g1'))).toBe(2);
    expect(reaching(ofFamily('IPv4', 'g1'), ofFamily('IPv4', 'invented'))).toBe(2);
    expect(reaching(ofFamily('IPv4', 'g1'), ofFamily('IPv6', 'invented'))).toBe(1);
    expect(reaching(ofFamily('IPv4'))).toBe(1);
  });
});
