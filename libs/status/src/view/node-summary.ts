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

/** What a way in use is like: of the peers that packets go to. */
export interface UsedPeers {
  readonly rttMs: readonly number[];
  readonly pathMtuBytes?: number;
  readonly lossRatio?: number;
  readonly isRelayed: boolean;
}

/** The way to a site in one family. */
interface FamilyRoute {
  /** Some gateway that packets go to carries them, as far as this node can see. */
  readonly isCarried: boolean;
  /** Gateways that would, and deny the site: what they report themselves decides. */
  readonly denying: readonly string[];
}

/** A site behind gateways. */
interface SiteRoute {
  /** Gateways that packets go to. */
  readonly via: readonly string[];
  readonly families: readonly FamilyRoute[];
  readonly used: UsedPeers;
}

export interface NodeSummary {
  readonly peers: ReadonlyMap<string, PeerSummary>;
  /** By site. */
  readonly routes: ReadonlyMap<string, SiteRoute>;
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

export const usedPeers = (peers: readonly PeerSummary[]): UsedPeers => {
  const pathMtuBytes = least(peers.map((peer) => peer.pathMtuBytes));
  const lossRatio = greatest(peers.map((peer) => peer.lossRatio));
  return {
    rttMs: peers.flatMap(({ rttMs }) => rttMs ?? []),
    isRelayed: peers.some(({ isRelayed }) => isRelayed),
    ...(pathMtuBytes === undefined ? {} : { pathMtuBytes }),
    ...(lossRatio === undefined ? {} : { lossRatio }),
  };
};

const activeOf = ({ members }: GroupStatus) => Object.entries(members).filter(([, { isActive }]) => isActive);

/** A member that packets go to is no proof of a way: the last one of a group stays although it does not answer. */
const familyRoute = (group: GroupStatus, { peers }: ConnectivityStatus): FamilyRoute => {
  const family = group.family === 'IPv6' ? 'ipv6' : 'ipv4';
  const able = activeOf(group).filter(([node]) => {
    // A name of Object's prototype is a name like any other.
    const health = Object.hasOwn(peers, node) ? peers[node]!.health[family] : undefined;
    return health && health.forwards !== false && (isAnswering(health) || health.forwards === true);
  });
  return {
    isCarried: able.some(([, { reachesSite }]) => reachesSite !== false),
    denying: able.flatMap(([node, { reachesSite }]) => (reachesSite === false ? [node] : [])),
  };
};

const siteRoutes = (status: ConnectivityStatus, peers: NodeSummary['peers']): Map<string, SiteRoute> => {
  const bySite = Map.groupBy(Object.values(status.groups), ({ site }) => site);
  return new Map(
    [...bySite].flatMap(([site, groups]): [string, SiteRoute][] => {
      if (site === undefined) return [];
      const via = [...new Set(groups.flatMap((group) => activeOf(group).map(([node]) => node)))];
      const families = groups.map((group) => familyRoute(group, status));
      return [[site, { via, families, used: usedPeers(via.flatMap((node) => peers.get(node) ?? [])) }]];
    }),
  );
};

const known = new WeakMap<NodeReport, NodeSummary>();

export const summarize = (report: NodeReport): NodeSummary => {
  const before = known.get(report);
  if (before) return before;
  const { connectivity } = report;
  const peers = new Map(
    Object.entries(connectivity?.peers ?? {}).map(([node, status]) => [node, summarizePeer(status)]),
  );
  const summary: NodeSummary = { peers, routes: connectivity ? siteRoutes(connectivity, peers) : new Map() };
  known.set(report, summary);
  return summary;
};
