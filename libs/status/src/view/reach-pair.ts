import type { ReachView } from './cluster-view.ts';
import type { UsedPeers } from './node-summary.ts';
import { selectSmallest } from './select-smallest.ts';

/** What the nodes of one site observe of the way to another one, together. */

/** The first hop of one node's way, and whether a later one goes over the relay. */
export interface Way {
  readonly isReached: boolean;
  readonly used: UsedPeers;
  readonly relayedReason?: string | undefined;
}

export interface Pair {
  nodes: number;
  reaching: number;
  relayed: number;
  relayedReason?: string;
  /** Gateways that packets go to. */
  readonly via: Set<string>;
  /** Those of them that some node reaches the other site by. */
  readonly carriers: Set<string>;
  /** Of each node that knows of the other site. */
  readonly used: UsedPeers[];
}

export const newPair = (): Pair => ({
  nodes: 0,
  reaching: 0,
  relayed: 0,
  via: new Set(),
  carriers: new Set(),
  used: [],
});

export const addWay = (pair: Pair, { isReached, used, relayedReason = used.relayedReason }: Way): void => {
  pair.nodes++;
  if (isReached) pair.reaching++;
  if (relayedReason !== undefined) {
    pair.relayed++;
    pair.relayedReason ??= relayedReason;
  }
  pair.used.push(used);
};

const DIGITS = 2;
/** A round trip is another one when it differs by so much: it trembles with each probe. */
const NOTABLE = 0.25;

const rounded = (value: number): number => Number(value.toPrecision(DIGITS));

const steadied = (value: number | undefined, before: number | undefined): number | undefined => {
  if (value === undefined || before === undefined) return value;
  return Math.abs(value - before) <= before * NOTABLE ? before : value;
};

const medianRttMs = (hops: readonly UsedPeers[]): number | undefined => {
  const values = new Float64Array(hops.reduce((sum, { rttMs }) => sum + rttMs.length, 0));
  let at = 0;
  for (const { rttMs } of hops) for (const value of rttMs) values[at++] = value;
  return at === 0 ? undefined : selectSmallest(values, Math.floor((at - 1) / 2));
};

const worstLoss = (hops: readonly UsedPeers[]): number | undefined => {
  const worst = hops.reduce((most, { lossRatio }) => Math.max(most, lossRatio ?? -1), -1);
  return worst < 0 ? undefined : worst;
};

/** Loss on both hops: what the first one lets through, the next one may lose. */
const lossOfBoth = (first: number | undefined, next: number | undefined): number | undefined =>
  first === undefined || next === undefined ? (first ?? next) : 1 - (1 - first) * (1 - next);

/** The hop to a gateway, and the one from there on; a gateway's own way is the second one alone. */
const measure = (used: readonly UsedPeers[], next: readonly UsedPeers[]) => {
  const ofNext = new Set(next);
  const first = next.length === 0 ? used : used.filter((one) => !ofNext.has(one));
  const [toGateway, onward] = [medianRttMs(first), medianRttMs(next)];
  const rttMs = onward === undefined ? toGateway : (toGateway ?? 0) + onward;
  const pathMtuBytes = [...first, ...next].reduce(
    (least, one) => Math.min(least, one.pathMtuBytes ?? Infinity),
    Infinity,
  );
  return { rttMs, pathMtuBytes, lossRatio: lossOfBoth(worstLoss(first), worstLoss(next)) };
};

const stateOf = ({ nodes, reaching }: Pair): ReachView['state'] => {
  if (nodes === 0) return 'Unknown';
  if (reaching === nodes) return 'Reachable';
  return reaching === 0 ? 'Unreachable' : 'Partial';
};

/** Over the relay, as far as an operator is concerned: none, some or all of it. */
const relayShare = ({ relayed, nodes }: Pick<ReachView, 'relayed' | 'nodes'>): 'none' | 'some' | 'all' => {
  if (relayed === 0) return 'none';
  return relayed < nodes ? 'some' : 'all';
};

const isAsBefore = (pair: Pair, before: ReachView): boolean =>
  stateOf(pair) === before.state && relayShare(pair) === relayShare(before);

/**
 * @param next hops of the gateways in use, towards the other site
 * @param now RFC 3339
 */
export const viewOfPair = (
  pair: Pair,
  next: readonly UsedPeers[],
  { before, now }: { readonly before: ReachView | undefined; readonly now: string },
): ReachView => {
  const { nodes, reaching, relayed, relayedReason, via, used } = pair;
  const { rttMs: rtt, pathMtuBytes, lossRatio } = measure(used, next);
  const rttMs = steadied(rtt === undefined ? undefined : rounded(rtt), before?.rttMs);
  return {
    state: stateOf(pair),
    since: (before && isAsBefore(pair, before) ? before.since : undefined) ?? now,
    ...{ nodes, reaching, relayed },
    ...(relayedReason === undefined ? {} : { relayedReason }),
    via: [...via].sort(),
    ...(rttMs === undefined ? {} : { rttMs }),
    ...(pathMtuBytes === Infinity ? {} : { pathMtuBytes }),
    ...(lossRatio === undefined ? {} : { lossRatio: rounded(lossRatio) }),
  };
};
