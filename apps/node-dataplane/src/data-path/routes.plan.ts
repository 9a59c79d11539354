import {
  comparePrefixes,
  containsPrefix,
  firstAddress,
  formatAddress,
  formatPrefix,
  parseAddress,
  parsePrefix,
  type Prefix,
} from '@unbounded/ip';
import type { BlockPlan, NodePlan } from '@unbounded/topology';
import type { KernelPlan, RoutePlan, RouteVia } from './kernel-plan.ts';

/** The node's routes, of either data path. */

/** How a data path leads to things. */
export interface RouteRendering {
  readonly viaOf: (block: BlockPlan) => RouteVia;
  /** To contained blocks. */
  readonly nowhere: RouteVia;
  /** Routes stand before those of the main table: what is reached directly needs one that leads back there. */
  readonly isBeforeMain: boolean;
}

interface Route {
  readonly prefix: Prefix;
  readonly via: RouteVia;
  readonly mtuBytes: number;
  readonly source?: BlockPlan['source'];
}

/** Routes in the order of their prefixes, one a prefix, without those that say what the next wider one says already. */
const withoutRepeats = (routes: readonly Route[]): Route[] => {
  const covering: Route[] = [];
  const isSame = (a: Route, b: Route): boolean =>
    typeof a.via === 'string' && a.via === b.via && a.mtuBytes === b.mtuBytes && a.source === b.source;
  const sorted = routes.toSorted((a, b) => comparePrefixes(a.prefix, b.prefix));
  return sorted.filter((route, index) => {
    const previous = sorted[index - 1];
    if (previous && comparePrefixes(previous.prefix, route.prefix) === 0) return false; // the first given counts
    while (covering.length > 0 && !containsPrefix(covering.at(-1)!.prefix, route.prefix)) covering.pop();
    const wider = covering.at(-1);
    covering.push(route);
    return !(wider && isSame(wider, route));
  });
};

/** A block behind a link that is narrower than the pods' MTU has a route with that link's. */
export const renderRoutes = (plan: NodePlan, { viaOf, nowhere, isBeforeMain }: RouteRendering): RoutePlan[] => {
  const podCidrs = plan.podCidrs.map(parsePrefix);
  const { own: locator } = plan.locators ?? {};
  const families = new Set([...podCidrs.map(({ family }) => family), ...(locator === undefined ? [] : [6])]);
  const own = new Set([...plan.podCidrs, ...(locator === undefined ? [] : [locator])]); // a node that has a whole pool has it on its bridge
  const { mtuBytes } = plan;
  const routed = plan.blocks
    .filter(({ use }) => use === undefined)
    .map((block): Route => ({
      ...{ prefix: parsePrefix(block.prefix), via: viaOf(block), mtuBytes: block.mtuBytes },
      ...(block.source === undefined ? {} : { source: block.source }),
    }));
  const contained = plan.contained.map((text): Route => ({ prefix: parsePrefix(text), via: nowhere, mtuBytes }));
  const wanted = [...routed, ...contained].filter(
    ({ prefix }) => families.has(prefix.family) && !own.has(formatPrefix(prefix)),
  );
  const direct = (isBeforeMain ? plan.direct : [])
    .map(parsePrefix)
    .filter((block) => wanted.some(({ prefix }) => containsPrefix(prefix, block)))
    .map((prefix): Route => ({ prefix, via: 'main', mtuBytes }));
  const overlayAddresses = podCidrs.map((block) => ({
    family: block.family,
    text: formatAddress(firstAddress(block)),
  }));
  const addressesOf = (source: Route['source']) =>
    source === 'node'
      ? plan.ownAddresses.map((text) => ({ family: parseAddress(text).family, text }))
      : overlayAddresses;
  return withoutRepeats([...direct, ...wanted]).map(({ prefix, via, mtuBytes: bytes, source }) => {
    const own = addressesOf(source).find(({ family }) => family === prefix.family);
    const prefSrc = own && via !== 'unreachable' && via !== 'main' ? own.text : undefined;
    return { prefix: formatPrefix(prefix), via, ...(prefSrc === undefined ? {} : { prefSrc }), mtuBytes: bytes };
  });
};

/** Nodes on a gateway's own network: of routes for what came out of the overlay, and of the sources that may come from them. */
export const renderNodeAddresses = (
  { blocks }: NodePlan,
  viaOf: (block: BlockPlan) => RouteVia,
): { readonly nodeAddresses?: string[]; readonly transitRoutes?: RoutePlan[] } => {
  const near = blocks
    .filter(({ use }) => use === 'transit' || use === 'accepted')
    .toSorted((a, b) => comparePrefixes(parsePrefix(a.prefix), parsePrefix(b.prefix)));
  const transit = near.filter(({ use }) => use === 'transit');
  return {
    ...(near.length === 0 ? {} : { nodeAddresses: near.map(({ prefix }) => prefix) }),
    ...(transit.length === 0
      ? {}
      : {
          transitRoutes: transit.map((block) => ({
            prefix: block.prefix,
            via: viaOf(block),
            mtuBytes: block.mtuBytes,
          })),
        }),
  };
};

/** Blocks that leave, and so come, without a tunnel (protocol None). */
export const nativePrefixes = ({ routes }: Pick<KernelPlan, 'routes'>): string[] =>
  routes.flatMap(({ prefix, via }) => (typeof via === 'object' && 'gateways' in via ? [prefix] : []));
