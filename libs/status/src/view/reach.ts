import type { ReachView } from './cluster-view.ts';
import { freshReport, type ViewInputs } from './inputs.ts';
import { type NodeSummary, type PeerSummary, summarize } from './node-summary.ts';

/** From which site which other is reached, as the nodes of the first one observe it. */

type Reach = Record<string, Record<string, ReachView>>;

interface Tally {
  nodes: number;
  reaching: number;
  relayed: number;
  readonly via: Set<string>;
  readonly used: PeerSummary[];
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
  const { nodes, reaching, relayed, via, used } = tally;
  const rtt = median(used.flatMap(({ rttMs }) => rttMs ?? []));
  const rttMs = steadied(rtt === undefined ? undefined : rounded(rtt), before?.rttMs);
  const mtus = used.flatMap(({ pathMtuBytes }) => pathMtuBytes ?? []);
  const losses = used.flatMap(({ lossRatio }) => lossRatio ?? []);
  return {
    state: stateOf(tally),
    ...{ nodes, reaching, relayed },
    via: [...via].sort(),
    ...(rttMs === undefined ? {} : { rttMs }),
    ...(mtus.length === 0 ? {} : { pathMtuBytes: Math.min(...mtus) }),
    ...(losses.length === 0 ? {} : { lossRatio: rounded(Math.max(...losses)) }),
  };
};

const add = (tally: Tally, isReached: boolean, used: readonly PeerSummary[]): void => {
  tally.nodes++;
  if (isReached) tally.reaching++;
  if (used.some(({ isRelayed }) => isRelayed)) tally.relayed++;
  tally.used.push(...used);
};

/** Peers within the site are reached directly: the site reaches itself as far as they answer. */
const addOwnSite = (tally: Tally, { peers }: NodeSummary, isOfSite: (node: string) => boolean): void => {
  const own = [...peers].flatMap(([node, peer]) => (isOfSite(node) && peer.verdict !== 'unprobed' ? [peer] : []));
  if (own.length > 0)
    add(
      tally,
      own.every(({ verdict }) => verdict === 'answers' || verdict === 'returns'),
      own,
    );
};

/** What a gateway reports of a site that it denies: it may forward there all the same, since its last gateway stays in use. */
type Carries = (gateway: string, site: string) => boolean;

const addRoutes = (tallyOf: (site: string) => Tally, { peers, routes }: NodeSummary, carries: Carries): void => {
  for (const [site, ofFamilies] of Map.groupBy(routes, (route) => route.site)) {
    const tally = tallyOf(site);
    const via = new Set(ofFamilies.flatMap((route) => route.via));
    for (const gateway of via) tally.via.add(gateway);
    const isReached = ofFamilies.every(
      ({ carrying, denying }) => carrying.length > 0 || denying.some((gateway) => carries(gateway, site)),
    );
    add(
      tally,
      isReached,
      [...via].flatMap((gateway) => peers.get(gateway) ?? []),
    );
  }
};

/** A site behind no gateway, since its nodes are peers themselves (peered sites that share a network, gateways that serve it). */
const addDirect = (tallyOf: (site: string) => Tally, own: string, summary: NodeSummary, siteOf: SiteOf): void => {
  const bySite = new Map<string, PeerSummary[]>();
  const routed = new Set(summary.routes.map((route) => route.site));
  for (const [node, peer] of summary.peers) {
    const site = siteOf(node);
    if (site === undefined || site === own || routed.has(site) || peer.verdict === 'unprobed') continue;
    bySite.set(site, [...(bySite.get(site) ?? []), peer]);
  }
  for (const [site, peers] of bySite)
    add(
      tallyOf(site),
      peers.some(({ verdict }) => verdict === 'answers' || verdict === 'returns'),
      peers,
    );
};

type SiteOf = (node: string) => string | undefined;

export const composeReach = (inputs: ViewInputs, before: Reach | undefined): Reach => {
  const sites = inputs.nodes.flatMap(({ name, site }) => (site === undefined ? [] : [[name, site] as const]));
  const siteByNode = new Map(sites);
  const siteOf: SiteOf = (node) => siteByNode.get(node);
  const carries: Carries = (gateway, site) => {
    const report = freshReport(inputs, gateway);
    const routes = report ? summarize(report).routes.filter((route) => route.site === site) : [];
    return routes.length > 0 && routes.every(({ carrying }) => carrying.length > 0);
  };
  const names = new Set(inputs.sites.map(({ name }) => name));
  const tallies = new Map([...names].map((name) => [name, new Map<string, Tally>()]));
  for (const [node, own] of sites) {
    const report = freshReport(inputs, node);
    const ofSite = tallies.get(own);
    if (!report || !ofSite) continue;
    const tallyOf = (site: string): Tally => {
      const tally = ofSite.get(site) ?? { nodes: 0, reaching: 0, relayed: 0, via: new Set(), used: [] };
      // What a node says of a site that is none goes nowhere.
      if (names.has(site)) ofSite.set(site, tally);
      return tally;
    };
    const summary = summarize(report);
    addOwnSite(tallyOf(own), summary, (other) => siteOf(other) === own);
    addRoutes(tallyOf, summary, carries);
    addDirect(tallyOf, own, summary, siteOf);
  }
  return Object.fromEntries(
    [...tallies].map(([from, ofSite]) => [
      from,
      Object.fromEntries([...ofSite].map(([to, tally]) => [to, viewOf(tally, before?.[from]?.[to])])),
    ]),
  );
};
