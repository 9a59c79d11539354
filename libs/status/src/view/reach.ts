import type { ReachView } from './cluster-view.ts';
import { freshReport, type ViewInputs } from './inputs.ts';
import { type NodeSummary, type PeerSummary, summarize, type UsedPeers, usedPeers } from './node-summary.ts';

/** From which site which other is reached, as the nodes of the first one observe it. */

type Reach = Record<string, Record<string, ReachView>>;

interface Tally {
  nodes: number;
  reaching: number;
  relayed: number;
  readonly via: Set<string>;
  readonly rttMs: number[];
  pathMtuBytes: number;
  lossRatio: number;
}

const DIGITS = 2;
/** A round trip is told anew when it is another by so much: it trembles with each probe. */
const NOTABLE = 0.25;

const rounded = (value: number): number => Number(value.toPrecision(DIGITS));

const steadied = (value: number | undefined, before: number | undefined): number | undefined => {
  if (value === undefined || before === undefined) return value;
  return Math.abs(value - before) <= before * NOTABLE ? before : value;
};

const median = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)];

const stateOf = ({ nodes, reaching }: Tally): ReachView['state'] => {
  if (nodes === 0) return 'Unknown';
  if (reaching === nodes) return 'Reachable';
  return reaching === 0 ? 'Unreachable' : 'Partial';
};

const viewOf = (tally: Tally, before: ReachView | undefined): ReachView => {
  const { nodes, reaching, relayed, via, pathMtuBytes, lossRatio } = tally;
  const rtt = median(tally.rttMs);
  const rttMs = steadied(rtt === undefined ? undefined : rounded(rtt), before?.rttMs);
  return {
    state: stateOf(tally),
    ...{ nodes, reaching, relayed },
    via: [...via].sort(),
    ...(rttMs === undefined ? {} : { rttMs }),
    ...(pathMtuBytes === Infinity ? {} : { pathMtuBytes }),
    ...(lossRatio < 0 ? {} : { lossRatio: rounded(lossRatio) }),
  };
};

const newTally = (): Tally => ({
  ...{ nodes: 0, reaching: 0, relayed: 0, via: new Set<string>(), rttMs: [] },
  ...{ pathMtuBytes: Infinity, lossRatio: -1 },
});

const add = (tally: Tally, isReached: boolean, used: UsedPeers): void => {
  tally.nodes++;
  if (isReached) tally.reaching++;
  if (used.isRelayed) tally.relayed++;
  for (const value of used.rttMs) tally.rttMs.push(value);
  tally.pathMtuBytes = Math.min(tally.pathMtuBytes, used.pathMtuBytes ?? Infinity);
  tally.lossRatio = Math.max(tally.lossRatio, used.lossRatio ?? -1);
};

/** Peers within the site are reached directly: the site reaches itself as far as they answer. */
const addOwnSite = (tally: Tally, { peers }: NodeSummary, isOfSite: (node: string) => boolean): void => {
  const own = [...peers].flatMap(([node, peer]) => (isOfSite(node) && peer.verdict !== 'unprobed' ? [peer] : []));
  if (own.length > 0)
    add(
      tally,
      own.every(({ verdict }) => verdict === 'answers' || verdict === 'returns'),
      usedPeers(own),
    );
};

type TallyOf = (site: string) => Tally;

interface Cluster {
  /** Undefined: no node, or of no site. */
  readonly siteOf: (node: string) => string | undefined;
  /** What a gateway reports of a site that it denies: it may forward there all the same, since its last gateway stays in use. */
  readonly carries: (gateway: string, site: string) => boolean;
}

const addRoutes = (tallyOf: TallyOf, { routes }: NodeSummary, { carries, siteOf }: Cluster): void => {
  for (const [site, { via, families, used }] of routes) {
    const tally = tallyOf(site);
    // Names that are no nodes are a node's own invention.
    for (const gateway of via) if (siteOf(gateway) !== undefined) tally.via.add(gateway);
    const isReached = families.every(
      ({ isCarried, denying }) => isCarried || denying.some((gateway) => carries(gateway, site)),
    );
    add(tally, isReached, used);
  }
};

/** A site behind no gateway, since its nodes are peers themselves (peered sites that share a network, gateways that serve it). */
const addDirect = (tallyOf: TallyOf, own: string, summary: NodeSummary, { siteOf }: Cluster): void => {
  const bySite = new Map<string, PeerSummary[]>();
  for (const [node, peer] of summary.peers) {
    const site = siteOf(node);
    if (site === undefined || site === own || summary.routes.has(site) || peer.verdict === 'unprobed') continue;
    bySite.set(site, [...(bySite.get(site) ?? []), peer]);
  }
  for (const [site, peers] of bySite)
    add(
      tallyOf(site),
      peers.some(({ verdict }) => verdict === 'answers' || verdict === 'returns'),
      usedPeers(peers),
    );
};

export const composeReach = (inputs: ViewInputs, before: Reach | undefined): Reach => {
  const sites = inputs.nodes.flatMap(({ name, site }) => (site === undefined ? [] : [[name, site] as const]));
  const siteByNode = new Map(sites);
  const cluster: Cluster = {
    siteOf: (node) => siteByNode.get(node),
    carries(gateway, site) {
      const report = freshReport(inputs, gateway);
      return (
        (report &&
          summarize(report)
            .routes.get(site)
            ?.families.every(({ isCarried }) => isCarried)) ??
        false
      );
    },
  };
  const names = new Set(inputs.sites.map(({ name }) => name));
  const tallies = new Map([...names].map((name) => [name, new Map<string, Tally>()]));
  for (const [node, own] of sites) {
    const report = freshReport(inputs, node);
    const ofSite = tallies.get(own);
    if (!report || !ofSite) continue;
    const tallyOf: TallyOf = (site) => {
      const tally = ofSite.get(site) ?? newTally();
      // What a node says of a site that is none goes nowhere.
      if (names.has(site)) ofSite.set(site, tally);
      return tally;
    };
    const summary = summarize(report);
    addOwnSite(tallyOf(own), summary, (other) => cluster.siteOf(other) === own);
    addRoutes(tallyOf, summary, cluster);
    addDirect(tallyOf, own, summary, cluster);
  }
  return Object.fromEntries(
    [...tallies].map(([from, ofSite]) => [
      from,
      Object.fromEntries([...ofSite].map(([to, tally]) => [to, viewOf(tally, before?.[from]?.[to])])),
    ]),
  );
};
