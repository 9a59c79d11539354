import type { ReachView } from './cluster-view.ts';
import { freshReport, type ViewInputs } from './inputs.ts';
import { type NextHops, nextHops } from './next-hops.ts';
import { isCarried, isUnable, type NodeSummary, type PeerSummary, summarize, usedPeers } from './node-summary.ts';
import { addWay, newPair, type Pair, viewOfPair } from './reach-pair.ts';

/** From which site which other is reached, as the nodes of the first one observe it. */

type Reach = Record<string, Record<string, ReachView>>;

const isReturningAnything = ({ verdict }: PeerSummary): boolean => verdict === 'answers' || verdict === 'returns';

/** Peers within the site are reached directly: the site reaches itself as far as they answer. */
const addOwnSite = (pair: Pair, { peers }: NodeSummary, isOfSite: (node: string) => boolean): void => {
  const own = [...peers].flatMap(([node, peer]) => (isOfSite(node) && peer.verdict !== 'unprobed' ? [peer] : []));
  if (own.length > 0) addWay(pair, { isReached: own.every(isReturningAnything), used: usedPeers(own) });
};

type PairWith = (site: string) => Pair;

interface Cluster {
  /** Undefined: no node, or of no site. */
  readonly siteOf: (node: string) => string | undefined;
  readonly hops: NextHops;
}

const addRoutes = (pairWith: PairWith, summary: NodeSummary, { hops, siteOf }: Cluster): void => {
  for (const route of summary.routes) {
    const { site, via, usedAt } = route;
    const pair = pairWith(site);
    const relayedReason = hops.relayedReason(via, site);
    // It may forward to a site that it denies all the same: the last gateway of a group stays in use.
    const isReached = isCarried(summary, route, (gateway) => hops.carries(gateway, site));
    for (const gateway of via) {
      // Names that are no nodes are a node's own invention.
      if (!pair.via.has(gateway) && siteOf(gateway) !== undefined) pair.via.add(gateway);
      if (isReached && !pair.carriers.has(gateway) && !isUnable(summary, gateway)) pair.carriers.add(gateway);
    }
    addWay(pair, { isReached, used: summary.used[usedAt]!, relayedReason });
  }
};

/** A site behind no gateway, since its nodes are peers themselves (peered sites that share a network, gateways that serve it). */
const addDirect = (pairWith: PairWith, own: string, summary: NodeSummary, { siteOf }: Cluster): void => {
  const bySite = new Map<string, PeerSummary[]>();
  const routed = new Set(summary.routes.map(({ site }) => site));
  for (const [node, peer] of summary.peers) {
    const site = siteOf(node);
    if (site === undefined || site === own || routed.has(site) || peer.verdict === 'unprobed') continue;
    bySite.set(site, [...(bySite.get(site) ?? []), peer]);
  }
  for (const [site, peers] of bySite)
    addWay(pairWith(site), { isReached: peers.some(isReturningAnything), used: usedPeers(peers) });
};

const viewOf = (pair: Pair, to: string, { hops }: Cluster, about: Parameters<typeof viewOfPair>[2]): ReachView => {
  const next = [...pair.via].flatMap((gateway) => hops.to(gateway, to) ?? []);
  return viewOfPair(pair, next, about);
};

export interface ComposedReach {
  readonly reach: Reach;
  /** By site, the gateways by which some node of it reaches another one: `via` has those too that carry nothing. */
  readonly carriers: ReadonlyMap<string, ReadonlySet<string>>;
}

const carriersOf = (pairs: Iterable<Pair>): ReadonlySet<string> =>
  new Set([...pairs].flatMap(({ carriers }) => [...carriers]));

/** @param now RFC 3339 */
export const composeReach = (inputs: ViewInputs, before: Reach | undefined, now: string): ComposedReach => {
  const sites = inputs.nodes.flatMap(({ name, site }) => (site === undefined ? [] : [[name, site] as const]));
  const siteByNode = new Map(sites);
  const siteOf = (node: string): string | undefined => siteByNode.get(node);
  const cluster: Cluster = { siteOf, hops: nextHops(inputs, siteOf) };
  const names = new Set(inputs.sites.map(({ name }) => name));
  const pairs = new Map([...names].map((name) => [name, new Map<string, Pair>()]));
  for (const [node, own] of sites) {
    const report = freshReport(inputs, node);
    const ofSite = pairs.get(own);
    if (!report || !ofSite) continue;
    const pairWith: PairWith = (site) => {
      const known = ofSite.get(site);
      if (known) return known;
      const pair = newPair();
      // What a node says of a site that is none goes nowhere.
      if (names.has(site)) ofSite.set(site, pair);
      return pair;
    };
    const summary = summarize(report);
    addOwnSite(pairWith(own), summary, (other) => siteOf(other) === own);
    addRoutes(pairWith, summary, cluster);
    addDirect(pairWith, own, summary, cluster);
  }
  const views = [...pairs].map(([from, ofSite]): [string, Reach[string]] => [
    from,
    Object.fromEntries(
      [...ofSite].map(([to, pair]) => [to, viewOf(pair, to, cluster, { before: before?.[from]?.[to], now })]),
    ),
  ]);
  const carriers = new Map([...pairs].map(([from, ofSite]) => [from, carriersOf(ofSite.values())]));
  return { reach: Object.fromEntries(views), carriers };
};
