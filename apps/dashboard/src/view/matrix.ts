import type { ClusterView } from '@unbounded/status';
import { percent, roundTrip } from './format.ts';
import { compareNames } from './sort.ts';
import type { ReachState, ReachView } from './types.ts';

/** The matrix of sites: a row is a source, a column a destination. */

const MEASURES = ['state', 'rtt', 'loss', 'mtu', 'path'] as const;
export type Measure = (typeof MEASURES)[number];

export const measureOf = (text: string | undefined): Measure => MEASURES.find((measure) => measure === text) ?? 'state';

/** Shapes, so that a state is told without its colour. */
export const SHAPES: Readonly<Record<ReachState, string>> = {
  ...{ Reachable: '●', Partial: '◐', Unreachable: '✕', Unknown: '?' },
};

const pathOf = ({ relayed, nodes, reaching }: ReachView): string => {
  if (relayed === 0) return reaching === 0 ? '' : 'D';
  return relayed < nodes ? 'D+R' : 'R';
};

const number = (text: string): string => text.replace(/ (ms|%)$/, '').replace('unknown', '');

interface Measured {
  readonly rttMs?: number | undefined;
  readonly lossRatio?: number | undefined;
  readonly pathMtuBytes?: number | undefined;
}

/** What stands in a cell beside its shape; short. */
export const measureText = ({ rttMs, lossRatio, pathMtuBytes }: Measured, path: string, measure: Measure): string => {
  switch (measure) {
    case 'state':
      return '';
    case 'rtt':
      return number(roundTrip(rttMs));
    case 'loss':
      return number(percent(lossRatio));
    case 'mtu':
      return pathMtuBytes === undefined ? '' : String(pathMtuBytes);
    case 'path':
      return path;
  }
};

export const cellText = (reach: ReachView, measure: Measure): string => measureText(reach, pathOf(reach), measure);

export const pathText = ({ relayed, relayedReason, nodes, reaching }: ReachView): string => {
  if (nodes === 0) return 'unknown';
  if (reaching === 0) return 'none that answers';
  if (relayed === 0) return 'direct';
  const why = relayedReason === undefined ? '' : `: ${relayedReason}`;
  return relayed >= nodes ? `over the relay${why}` : `direct, from ${relayed} of ${nodes} nodes over the relay${why}`;
};

export const viaText = ({ via, nodes }: ReachView): string => {
  if (via.length > 0) return via.join(', ');
  return nodes === 0 ? 'unknown' : 'no gateway';
};

/** Known only where something answers. */
export const mtuText = ({ pathMtuBytes, reaching }: ReachView): string => {
  if (pathMtuBytes !== undefined) return `${pathMtuBytes} bytes`;
  return reaching === 0 ? 'unknown' : 'as the device';
};

/** All of a cell as pairs of term and text. */
export const reachTexts = (reach: ReachView): [term: string, text: string][] => [
  ['State', reach.state],
  ['Nodes that reach it', `${reach.reaching} of ${reach.nodes} that know of it`],
  ['Round trip (median, to the next gateway)', roundTrip(reach.rttMs)],
  ['Loss (worst node)', percent(reach.lossRatio)],
  ['Path MTU', mtuText(reach)],
  ['Path', pathText(reach)],
  ['Via', viaText(reach)],
];

export const NO_REACH = 'no node of the source reports of it';

/** The name of a cell, for who cannot see it. */
export const labelOf = (
  from: string,
  to: string,
  facts: readonly (readonly [term: string, text: string])[],
): string => {
  const texts = facts.map(([term, text]) => (term === 'State' ? text : `${term}: ${text}`));
  return `${from} to ${to}: ${texts.join('; ')}`;
};

export const cellLabel = (from: string, to: string, reach: ReachView | undefined): string =>
  reach ? labelOf(from, to, reachTexts(reach)) : `${from} to ${to}: ${NO_REACH}`;

const isAffected = (reach: ReachView): boolean => reach.state !== 'Reachable' || reach.relayed > 0;

/** Sites in the matrix, by name. `affected`: those that are in a cell which is not Reachable and direct. */
export const matrixSites = (
  { sites, reach }: Pick<ClusterView, 'sites' | 'reach'>,
  filter: { readonly q?: string | undefined; readonly only?: string | undefined },
): string[] => {
  const words = (filter.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const affected = new Set<string>();
  if (filter.only === 'affected')
    for (const [from, row] of Object.entries(reach))
      for (const [to, cell] of Object.entries(row)) if (isAffected(cell)) affected.add(from).add(to);
  return Object.keys(sites)
    .filter((name) => words.length === 0 || words.some((word) => name.toLowerCase().includes(word)))
    .filter((name) => filter.only !== 'affected' || affected.has(name))
    .sort(compareNames);
};

/** Where a key leads in the grid (ARIA grid pattern); undefined: it leads nowhere. */
export const moveInGrid = (
  key: string,
  isControl: boolean,
  [row, column]: readonly [number, number],
  { rows, columns, page }: { readonly rows: number; readonly columns: number; readonly page: number },
): [number, number] | undefined => {
  const to = (r: number, c: number): [number, number] => [
    Math.min(Math.max(r, 0), rows - 1),
    Math.min(Math.max(c, 0), columns - 1),
  ];
  switch (key) {
    case 'ArrowUp':
      return to(row - 1, column);
    case 'ArrowDown':
      return to(row + 1, column);
    case 'ArrowLeft':
      return to(row, column - 1);
    case 'ArrowRight':
      return to(row, column + 1);
    case 'PageUp':
      return to(row - page, column);
    case 'PageDown':
      return to(row + page, column);
    case 'Home':
      return to(isControl ? 0 : row, 0);
    case 'End':
      return to(isControl ? rows - 1 : row, columns - 1);
    default:
      return undefined;
  }
};
