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
  /** Of a session that goes over the relay: why. */
  readonly relayedReason?: string;
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
  /** Some of it goes over the relay, for this reason. */
  readonly relayedReason?: string;
}

type HealthFamily = 'ipv4' | 'ipv6';

/** What the groups of a node have of one site; it stays as it is while only the peers' answers change. */
export interface SiteRoute {
  readonly site: string;
  /** Gateways that packets go to. */
  readonly via: readonly string[];
  /** Of `NodeSummary.used`: routes with the same gateways share it. */
  readonly usedAt: number;
  readonly families: readonly {
    readonly family: HealthFamily;
    /** denies: it reports that it does not reach the site. */
    readonly active: readonly { readonly node: string; readonly denies: boolean }[];
  }[];
  /** In each family some gateway that packets go to does not deny the site. */
  readonly isUndenied: boolean;
}

export interface NodeSummary {
  readonly peers: ReadonlyMap<string, PeerSummary>;
  /** Sites behind gateways. */
  readonly routes: readonly SiteRoute[];
  readonly used: readonly UsedPeers[];
  /** Gateways that packets go to and that carry none, as far as this node can see. */
  readonly unable: Readonly<Record<HealthFamily, ReadonlySet<string>>>;
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
  const relayed = Object.values(wireGuard).find(({ path }) => path === 'Relayed');
  return {
    verdict: verdictOf(families),
    forwards: families.every(({ forwards }) => forwards !== false),
    ...(relayed ? { relayedReason: relayed.pathReason ?? 'not reported' } : {}),
    ...(rttMs === undefined ? {} : { rttMs }),
    ...(pathMtuBytes === undefined ? {} : { pathMtuBytes }),
    ...(lossRatio === undefined ? {} : { lossRatio }),
  };
};

export const usedPeers = (peers: readonly PeerSummary[]): UsedPeers => {
  const pathMtuBytes = least(peers.map((peer) => peer.pathMtuBytes));
  const lossRatio = greatest(peers.map((peer) => peer.lossRatio));
  const relayedReason = peers.find((peer) => peer.relayedReason !== undefined)?.relayedReason;
  return {
    rttMs: peers.flatMap(({ rttMs }) => rttMs ?? []),
    ...(relayedReason === undefined ? {} : { relayedReason }),
    ...(pathMtuBytes === undefined ? {} : { pathMtuBytes }),
    ...(lossRatio === undefined ? {} : { lossRatio }),
  };
};

/** Routes of a report's groups, and the distinct lists of gateways among them. */
interface Routes {
  readonly ofSites: readonly SiteRoute[];
  readonly vias: readonly (readonly string[])[];
}

type Groups = ConnectivityStatus['groups'];

type FamilyRoute = SiteRoute['families'][number];

/** Of all groups of a family together: one that a node says twice is one, and does not deny the site where it once does not. */
const activeOf = (groups: readonly GroupStatus[]): FamilyRoute['active'] => {
  const denying = new Map<string, boolean>();
  for (const { members } of groups)
    for (const [node, { isActive, reachesSite }] of Object.entries(members))
      if (isActive) denying.set(node, reachesSite === false && denying.get(node) !== false);
  return [...denying].map(([node, denies]) => ({ node, denies }));
};

/** A route has as many as there are address families, however many groups a node says that it has: each is looked at for itself. */
const familyRoutes = (groups: readonly GroupStatus[]): FamilyRoute[] => {
  const byFamily = Map.groupBy(groups, ({ family }): HealthFamily => (family === 'IPv6' ? 'ipv6' : 'ipv4'));
  return [...byFamily].map(([family, ofFamily]) => ({ family, active: activeOf(ofFamily) }));
};

const findRoutes = (groups: Groups): Routes => {
  const vias = new Map<string, { readonly at: number; readonly via: readonly string[] }>();
  const bySite = Map.groupBy(Object.values(groups), ({ site }) => site);
  const ofSites = [...bySite].flatMap(([site, ofSite]): SiteRoute[] => {
    if (site === undefined) return [];
    const families = familyRoutes(ofSite);
    const via = [...new Set(families.flatMap(({ active }) => active.map(({ node }) => node)))];
    const key = via.join('\0');
    const shared = vias.get(key) ?? { at: vias.size, via };
    vias.set(key, shared);
    const isUndenied = families.every(({ active }) => active.some(({ denies }) => !denies));
    return [{ site, via: shared.via, usedAt: shared.at, families, isUndenied }];
  });
  return { ofSites, vias: [...vias.values()].map(({ via }) => via) };
};

const knownRoutes = new WeakMap<Groups, Routes>();
const NO_ROUTES: Routes = { ofSites: [], vias: [] };

/** Once for each object: reports of a node that differ in something else share their groups. */
const routesOf = (groups: Groups): Routes => {
  const before = knownRoutes.get(groups);
  if (before) return before;
  const routes = findRoutes(groups);
  knownRoutes.set(groups, routes);
  return routes;
};

/** A member that packets go to is no proof of a way: the last one of a group stays although it does not answer. */
const isAble = ({ peers }: ConnectivityStatus, node: string, family: HealthFamily): boolean => {
  // A name of Object's prototype is a name like any other.
  const health = Object.hasOwn(peers, node) ? peers[node]!.health[family] : undefined;
  return health !== undefined && health.forwards !== false && (isAnswering(health) || health.forwards === true);
};

const unableOf = (status: ConnectivityStatus, { ofSites }: Routes): NodeSummary['unable'] => {
  const active = { ipv4: new Set<string>(), ipv6: new Set<string>() };
  for (const { families } of ofSites)
    for (const { family, active: members } of families) for (const { node } of members) active[family].add(node);
  const unable = (family: HealthFamily): Set<string> =>
    new Set([...active[family]].filter((node) => !isAble(status, node, family)));
  return { ipv4: unable('ipv4'), ipv6: unable('ipv6') };
};

const NONE_UNABLE: NodeSummary['unable'] = { ipv4: new Set(), ipv6: new Set() };

const known = new WeakMap<NodeReport, NodeSummary>();

export const summarize = (report: NodeReport): NodeSummary => {
  const before = known.get(report);
  if (before) return before;
  const { connectivity } = report;
  const peers = new Map(
    Object.entries(connectivity?.peers ?? {}).map(([node, status]) => [node, summarizePeer(status)]),
  );
  const routes = connectivity ? routesOf(connectivity.groups) : NO_ROUTES;
  const summary: NodeSummary = {
    peers,
    routes: routes.ofSites,
    used: routes.vias.map((via) => usedPeers(via.flatMap((node) => peers.get(node) ?? []))),
    unable: connectivity ? unableOf(connectivity, routes) : NONE_UNABLE,
  };
  known.set(report, summary);
  return summary;
};

/** In some family it sees no way by that gateway. */
export const isUnable = ({ unable }: NodeSummary, gateway: string): boolean =>
  unable.ipv4.has(gateway) || unable.ipv6.has(gateway);

/** @param carries of a gateway that denies the site: what it reports itself decides */
export const isCarried = (
  { unable }: NodeSummary,
  { families, isUndenied }: SiteRoute,
  carries: (gateway: string) => boolean = () => false,
): boolean => {
  if (isUndenied && unable.ipv4.size === 0 && unable.ipv6.size === 0) return true;
  return families.every(({ family, active }) =>
    active.some(({ node, denies }) => !unable[family].has(node) && (!denies || carries(node))),
  );
};
