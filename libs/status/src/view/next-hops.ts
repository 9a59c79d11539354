import { freshReport, type ViewInputs } from './inputs.ts';
import { isCarried, type NodeSummary, summarize, type UsedPeers, usedPeers } from './node-summary.ts';

/** What gateways report of their own ways: the second hop of a way that begins at another node. */
export interface NextHops {
  /** Whether it reaches the site, as far as it reports itself. */
  carries(gateway: string, site: string): boolean;
  /** Its way to the site. Undefined: it does not report, or the site is its own. */
  to(gateway: string, site: string): UsedPeers | undefined;
  /** Why the way to the site goes over the relay behind one of these gateways. Undefined: behind none. */
  relayedReason(gateways: readonly string[], site: string): string | undefined;
}

/** Of one composition: the reports stay as they are. */
const remembered = <Key, Value>(find: (key: Key) => Value): ((key: Key) => Value) => {
  const known = new Map<Key, Value>();
  return (key) => {
    const before = known.get(key);
    // undefined is no answer of any that is remembered here.
    if (before !== undefined) return before;
    const found = find(key);
    known.set(key, found);
    return found;
  };
};

/** @param siteOf undefined: no node, or of no site */
export const nextHops = (inputs: ViewInputs, siteOf: (node: string) => string | undefined): NextHops => {
  const summaryOf = (gateway: string): NodeSummary | undefined => {
    const report = siteOf(gateway) === undefined ? undefined : freshReport(inputs, gateway);
    return report && summarize(report);
  };
  const bySite = (gateway: string): Map<string, UsedPeers> => {
    const [summary, own] = [summaryOf(gateway), siteOf(gateway)];
    if (!summary) return new Map();
    const direct = Map.groupBy(summary.peers, ([peer]) => siteOf(peer));
    const ofPeers = [...direct].flatMap(([site, peers]): [string, UsedPeers][] =>
      site === undefined ? [] : [[site, usedPeers(peers.map(([, peer]) => peer))]],
    );
    const routed = summary.routes.map(({ site, usedAt }): [string, UsedPeers] => [site, summary.used[usedAt]!]);
    const hops = new Map([...ofPeers, ...routed]);
    if (own !== undefined) hops.delete(own);
    return hops;
  };
  const hopsOf = remembered(bySite);
  const isRelaying = remembered((gateway: string) =>
    [...hopsOf(gateway).values()].some((hop) => hop.relayedReason !== undefined),
  );
  // A node has one list of gateways for many sites, and next to no gateway relays anything.
  const relayingOf = remembered((gateways: readonly string[]) => gateways.filter(isRelaying));
  // A node may deny any site by any gateway, ever again: each is looked at once.
  const carriedBy = remembered((gateway: string) => {
    const summary = summaryOf(gateway);
    const routes = new Map(summary?.routes.map((route) => [route.site, route]));
    return remembered((site: string) => {
      const route = routes.get(site);
      return route !== undefined && isCarried(summary!, route);
    });
  });
  return {
    carries: (gateway, site) => carriedBy(gateway)(site),
    to: (gateway, site) => hopsOf(gateway).get(site),
    relayedReason(gateways, site) {
      for (const gateway of relayingOf(gateways)) {
        const reason = hopsOf(gateway).get(site)?.relayedReason;
        if (reason !== undefined) return reason;
      }
      return undefined;
    },
  };
};
