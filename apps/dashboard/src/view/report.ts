import type { NodeReport, PeerHealthStatus, PeerStatus, WireGuardPeerStatus } from '@unbounded/status';
import { urgencyOf } from './nodes.ts';

/** Rows of tables made from a node's report. */

export interface PeerRow extends PeerStatus {
  readonly name: string;
}

export const peerRows = ({ connectivity }: NodeReport): PeerRow[] =>
  Object.entries(connectivity?.peers ?? {}).map(([name, peer]) => ({ ...peer, name }));

const STATES = ['Unhealthy', 'Degraded', 'Unknown', 'Recovering', 'New', 'Healthy'];
export const peerUrgency = (state: string): number => STATES.indexOf(state);

/** Of the families that are probed. */
export const healths = ({ health: { ipv4, ipv6 } }: PeerStatus): PeerHealthStatus[] =>
  [ipv4, ipv6].filter((each) => each !== undefined);

/** Of both families the worse one; what is not probed is last. */
export const worstOf = (peer: PeerRow): number =>
  Math.min(STATES.length, ...healths(peer).map(({ state }) => peerUrgency(state)));

export const worstState = (peer: PeerRow): string => STATES[worstOf(peer)] ?? 'Unknown';

const numbers = (peer: PeerRow, of: (health: PeerHealthStatus) => number | undefined): number[] =>
  healths(peer).flatMap((health) => of(health) ?? []);

/** The longest round trip and the smallest MTU of both families; undefined: none is known. */
export const rttOf = (peer: PeerRow): number | undefined => {
  const all = numbers(peer, ({ rttMs }) => rttMs);
  return all.length === 0 ? undefined : Math.max(...all);
};
export const lossOf = (peer: PeerRow): number | undefined => {
  const all = numbers(peer, ({ lossRatio }) => lossRatio);
  return all.length === 0 ? undefined : Math.max(...all);
};
export const mtuOf = (peer: PeerRow): number | undefined => {
  const all = numbers(peer, ({ pathMtuBytes }) => pathMtuBytes);
  return all.length === 0 ? undefined : Math.min(...all);
};

/** Which way packets go; Direct where there is no relay that they could take. */
export const pathsOf = ({ wireGuard }: PeerStatus): string => {
  const sessions = Object.values(wireGuard);
  if (sessions.length === 0) return 'no session';
  const paths = new Set(sessions.map(({ path }) => path ?? 'Direct'));
  return [...paths].sort().join(' and ');
};

export interface SessionRow extends WireGuardPeerStatus {
  readonly id: string;
  readonly peer: string;
  readonly device: string;
}

export const sessionRows = (report: NodeReport): SessionRow[] =>
  peerRows(report).flatMap(({ name, wireGuard }) =>
    Object.entries(wireGuard).map(([device, session]) => ({ ...session, id: `${name} ${device}`, peer: name, device })),
  );

export interface GroupRow {
  readonly name: string;
  readonly site: string | undefined;
  readonly family: string;
  readonly active: readonly string[];
  /** With what is known of them. */
  readonly others: readonly string[];
}

export const groupRows = ({ connectivity }: NodeReport): GroupRow[] =>
  Object.entries(connectivity?.groups ?? {}).map(([name, { site, family, members }]) => {
    const all = Object.entries(members).sort(([a, { tier: x }], [b, { tier: y }]) => x - y || a.localeCompare(b));
    const others = all.filter(([, { isActive }]) => !isActive);
    return {
      ...{ name, site, family, active: all.filter(([, { isActive }]) => isActive).map(([member]) => member) },
      others: others.map(
        ([member, { tier, reachesSite }]) => `${member} (tier ${tier}${reachesSite === false ? ', says no' : ''})`,
      ),
    };
  });

export const groupUrgency = ({ active }: GroupRow): number =>
  urgencyOf(active.length > 0 ? 'Reachable' : 'Unreachable');
