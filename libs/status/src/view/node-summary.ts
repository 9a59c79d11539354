import type { ConnectivityStatus, GroupStatus, PeerHealthStatus, PeerStatus } from '../report/connectivity-status.ts';
import type { NodeReport } from '../report/node-report.ts';

/** What a report says, as the view needs it; computed once for each report. */

/** answers: in every family that is probed. mute: in none. some: in some of them, or not known yet. */
export type PeerVerdict = 'answers' | 'some' | 'mute' | 'unprobed';

export interface PeerSummary {
  readonly verdict: PeerVerdict;
  readonly isRelayed: boolean;
  /** false: echoes through it do not return, in some family. */
  readonly forwards: boolean;
  readonly rttMs?: number;
  readonly pathMtuBytes?: number;
  readonly lossRatio?: number;
}

/** A site behind gateways. */
export interface RouteSummary {
  /** In every family that has a way, packets go to a gateway that answers. */
  readonly isReached: boolean;
  /** Gateways that packets go to. */
  readonly via: readonly string[];
}

export interface NodeSummary {
  readonly peers: ReadonlyMap<string, PeerSummary>;
  readonly routes: ReadonlyMap<string, RouteSummary>;
}

const verdictOf = (families: readonly PeerHealthStatus[]): PeerVerdict => {
  if (families.length === 0) return 'unprobed';
  const answering = families.filter(({ state }) => state === 'Healthy' || state === 'Degraded').length;
  if (answering === families.length) return 'answers';
  return answering === 0 && families.every(({ state }) => state === 'Unhealthy' || state === 'Recovering')
    ? 'mute'
    : 'some';
};

const least = (values: readonly (number | undefined)[]): number | undefined => {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
};
const greatest = (values: readonly (number | undefined)[]): number | undefined => {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.max(...known);
};

const summarizePeer = ({ health, wireGuard }: PeerStatus): PeerSummary => {
  const families = [health.ipv4, health.ipv6].filter((family) => family !== undefined);
  const rttMs = least(families.map((family) => family.rttMs));
  const pathMtuBytes = least(families.map((family) => family.pathMtuBytes));
  const lossRatio = greatest(families.map((family) => family.lossRatio));
  return {
    verdict: verdictOf(families),
    isRelayed: Object.values(wireGuard).some(({ path }) => path === 'Relayed'),
    forwards: families.every(({ forwards }) => forwards !== false),
    ...(rttMs === undefined ? {} : { rttMs }),
    ...(pathMtuBytes === undefined ? {} : { pathMtuBytes }),
    ...(lossRatio === undefined ? {} : { lossRatio }),
  };
};

/** A member that packets go to is no proof of a way: the last one of a group stays although it does not answer. */
const isReachedBy = ({ members, family }: GroupStatus, { peers }: ConnectivityStatus): boolean =>
  Object.entries(members).some(([node, { isActive, reachesSite }]) => {
    const health = peers[node]?.health[family === 'IPv6' ? 'ipv6' : 'ipv4'];
    const answers = health?.state === 'Healthy' || health?.state === 'Degraded';
    return isActive && reachesSite !== false && answers && health.forwards !== false;
  });

const summarizeRoutes = (status: ConnectivityStatus): Map<string, RouteSummary> => {
  const routes = new Map<string, RouteSummary>();
  for (const group of Object.values(status.groups)) {
    if (group.site === undefined) continue;
    const known = routes.get(group.site);
    const active = Object.entries(group.members).flatMap(([node, { isActive }]) => (isActive ? [node] : []));
    routes.set(group.site, {
      isReached: (known?.isReached ?? true) && isReachedBy(group, status),
      via: [...new Set([...(known?.via ?? []), ...active])].sort(),
    });
  }
  return routes;
};

const known = new WeakMap<NodeReport, NodeSummary>();

export const summarize = (report: NodeReport): NodeSummary => {
  const before = known.get(report);
  if (before) return before;
  const { connectivity } = report;
  const peers = Object.entries(connectivity?.peers ?? {});
  const summary: NodeSummary = {
    peers: new Map(peers.map(([node, status]) => [node, summarizePeer(status)])),
    routes: connectivity ? summarizeRoutes(connectivity) : new Map(),
  };
  known.set(report, summary);
  return summary;
};
