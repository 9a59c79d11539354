import type { ConnectivityStatus, GroupStatus, PeerHealthStatus, PeerStatus } from '../report/connectivity-status.ts';
import type { NodeReport } from '../report/node-report.ts';

/** What a report says, as the view needs it; computed once for each report. */

/**
 * answers: in every family that is probed. returns: it answers no probe, but its kernel returns echoes: its agent is away, and it forwards.
 * mute: neither. some: in some families, or not known yet.
 */
export type PeerVerdict = 'answers' | 'returns' | 'some' | 'mute' | 'unprobed';

export interface PeerSummary {
  readonly verdict: PeerVerdict;
  readonly isRelayed: boolean;
  /** false: echoes through it do not return, in some family. */
  readonly forwards: boolean;
  readonly rttMs?: number;
  readonly pathMtuBytes?: number;
  readonly lossRatio?: number;
}

/** A site behind gateways, in one family. */
interface RouteSummary {
  readonly site: string;
  /** Gateways that packets go to. */
  readonly via: readonly string[];
  /** Those of them that carry packets, as far as this node can see. */
  readonly carrying: readonly string[];
  /** Those that would, and deny the site: what they report themselves decides. */
  readonly denying: readonly string[];
}

export interface NodeSummary {
  readonly peers: ReadonlyMap<string, PeerSummary>;
  readonly routes: readonly RouteSummary[];
}

const isAnswering = ({ state }: PeerHealthStatus): boolean => state === 'Healthy' || state === 'Degraded';
const isSilent = ({ state }: PeerHealthStatus): boolean => state === 'Unhealthy' || state === 'Recovering';

const verdictOf = (families: readonly PeerHealthStatus[]): PeerVerdict => {
  if (families.length === 0) return 'unprobed';
  if (families.every(isAnswering)) return 'answers';
  if (!families.every(isSilent)) return 'some';
  return families.every(({ forwards }) => forwards === true) ? 'returns' : 'mute';
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
const summarizeRoute = (
  { members, family }: GroupStatus,
  site: string,
  { peers }: ConnectivityStatus,
): RouteSummary => {
  const active = Object.entries(members).filter(([, { isActive }]) => isActive);
  const ables = active.filter(([node]) => {
    const health = peers[node]?.health[family === 'IPv6' ? 'ipv6' : 'ipv4'];
    return health && health.forwards !== false && (isAnswering(health) || health.forwards === true);
  });
  const nodesOf = (entries: typeof active): string[] => entries.map(([node]) => node);
  return {
    site,
    via: nodesOf(active),
    carrying: nodesOf(ables.filter(([, { reachesSite }]) => reachesSite !== false)),
    denying: nodesOf(ables.filter(([, { reachesSite }]) => reachesSite === false)),
  };
};

const known = new WeakMap<NodeReport, NodeSummary>();

export const summarize = (report: NodeReport): NodeSummary => {
  const before = known.get(report);
  if (before) return before;
  const { connectivity } = report;
  const peers = Object.entries(connectivity?.peers ?? {});
  const summary: NodeSummary = {
    peers: new Map(peers.map(([node, status]) => [node, summarizePeer(status)])),
    routes: Object.values(connectivity?.groups ?? {}).flatMap((group) =>
      group.site === undefined ? [] : [summarizeRoute(group, group.site, connectivity!)],
    ),
  };
  known.set(report, summary);
  return summary;
};
