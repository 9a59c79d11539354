import type { ClusterView } from '@unbounded/status';
import { urgencyOf } from './nodes.ts';
import { compareNames } from './sort.ts';
import type { PoolView, ReachState, ReachView, SiteView } from './types.ts';

/** The picture: pools in the middle, sites in columns to their left and right. */

export interface Place {
  readonly id: string;
  readonly kind: 'site' | 'pool';
  readonly name: string;
  readonly state: SiteView['state'];
  readonly x: number;
  readonly y: number;
}

export interface Link {
  readonly id: string;
  readonly from: string;
  readonly to: string;
  readonly state: ReachState;
  readonly isRelayed: boolean;
  readonly text: string;
}

const [COLUMN, ROW, MIDDLE] = [190, 56, 420] as const;
const MOST_IN_COLUMN = 26;

const siteId = (name: string): string => `site/${name}`;
const poolId = (name: string): string => `pool/${name}`;

export const placesOf = ({ sites, pools }: Pick<ClusterView, 'sites' | 'pools'>): Place[] => {
  const names = Object.keys(sites).sort(compareNames);
  const perSide = Math.ceil(names.length / 2);
  const columns = Math.max(1, Math.ceil(perSide / MOST_IN_COLUMN));
  const rows = Math.ceil(perSide / columns);
  const placed = names.map((name, index): Place => {
    const [side, at] = index < perSide ? [-1, index] : [1, index - perSide];
    const column = Math.floor(at / rows);
    const x = side * (MIDDLE + column * COLUMN);
    return { id: siteId(name), kind: 'site', name, state: sites[name]!.state, x, y: (at % rows) * ROW };
  });
  const poolNames = Object.keys(pools).sort(compareNames);
  const step = (Math.max(rows, poolNames.length) * ROW) / Math.max(poolNames.length, 1);
  return [
    ...placed,
    ...poolNames.map((name, index): Place => ({
      ...{ id: poolId(name), kind: 'pool', name, state: pools[name]!.state, x: 0 },
      y: index * step + (step - ROW) / 2,
    })),
  ];
};

const poolLink = (site: string, name: string, { gateways }: PoolView): Link => {
  const all = Object.values(gateways);
  const active = all.filter(({ activeFor }) => activeFor.includes(site)).length;
  const isUnknown = all.every(({ state }) => state === 'Unknown');
  const without: ReachState = isUnknown ? 'Unknown' : 'Unreachable';
  return {
    ...{ id: `${site} ${name}`, from: siteId(site), to: poolId(name), isRelayed: false },
    state: active > 0 ? 'Reachable' : without,
    text: `${active} of ${all.length} gateways active`,
  };
};

const worse = (a: ReachView, b: ReachView | undefined): ReachView =>
  b && urgencyOf(b.state) < urgencyOf(a.state) ? b : a;

/** One for both directions: the worse one. */
const pairLink = (from: string, to: string, reach: ClusterView['reach']): Link | undefined => {
  const [there, back] = [reach[from]?.[to], reach[to]?.[from]];
  const first = there ?? back;
  if (!first) return undefined;
  const { state } = worse(first, back);
  const isRelayed = (there?.relayed ?? 0) + (back?.relayed ?? 0) > 0;
  const text = `to: ${there?.state ?? 'Unknown'}, back: ${back?.state ?? 'Unknown'}${isRelayed ? ', over the relay' : ''}`;
  return { id: `${from} ${to}`, from: siteId(from), to: siteId(to), state, isRelayed, text };
};

const MOST_LINKS = 150;

/** Its box says all: lines to everywhere would hide the others. */
const isOut = ({ state }: SiteView): boolean => state === 'Unreachable' || state === 'Unknown';

export interface Links {
  readonly shown: readonly Link[];
  /** Before they were cut. */
  readonly total: number;
}

/**
 * Between sites and the pools that connect them; between sites, all of the chosen site or, without one, those that do not
 * work whole or go over the relay, except of sites that are out altogether. The worst come first, and so many.
 */
export const linksOf = (view: Pick<ClusterView, 'sites' | 'pools' | 'reach'>, chosen: string | undefined): Links => {
  const { sites } = view;
  const known = new Set(Object.keys(sites));
  const toPools = Object.entries(view.pools).flatMap(([name, pool]) =>
    pool.connectedSites.filter((site) => known.has(site)).map((site) => poolLink(site, name, pool)),
  );
  const names = [...known].sort(compareNames);
  const pairs = names.flatMap((from, index) =>
    names.slice(index + 1).flatMap((to) => {
      const link =
        chosen === undefined || from === chosen || to === chosen ? pairLink(from, to, view.reach) : undefined;
      const isPlain = (link?.state === 'Reachable' && !link.isRelayed) || isOut(sites[from]!) || isOut(sites[to]!);
      return link && (chosen !== undefined || !isPlain) ? [link] : [];
    }),
  );
  const ofSites = pairs.sort((a, b) => urgencyOf(a.state) - urgencyOf(b.state) || compareNames(a.id, b.id));
  return { shown: [...toPools, ...ofSites.slice(0, MOST_LINKS)], total: toPools.length + ofSites.length };
};
