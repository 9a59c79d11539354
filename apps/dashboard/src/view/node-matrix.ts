import type { ClusterView, NodeReport, PeerStatus } from '@unbounded/status';
import { percent, roundTrip, UNKNOWN } from './format.ts';
import { labelOf } from './matrix.ts';
import { urgencyOf } from './nodes.ts';
import { hasWords } from './problems.ts';
import { healths, lossOf, mtuOf, pathsOf, type PeerRow, rttOf, worstState } from './report.ts';
import { compareNames } from './sort.ts';

/** From the nodes of a site to what they probe on the way to another one: a row is a node, a column its next hop or a node of that site. */

/** What is known of a node's own report. */
export type Known = { readonly report: NodeReport } | { readonly why: string };

export interface NodeCell {
  /** Of the peer; Unknown where nobody says. */
  readonly state: string;
  /** Why it is not known, or not healthy although it answers. */
  readonly why?: string;
  /** Of a gateway: whether packets to the site go there now. */
  readonly isUsed?: boolean;
  readonly rttMs?: number | undefined;
  readonly lossRatio?: number | undefined;
  readonly pathMtuBytes?: number | undefined;
  readonly path: string;
  /** Why packets go that way, as the node says. */
  readonly pathReasons: readonly string[];
}

const unknownCell = (why: string): NodeCell => ({ state: 'Unknown', why, path: '', pathReasons: [] });

interface Member {
  readonly isUsed: boolean;
  /** What the gateway says itself, of all families. */
  readonly isDenied: boolean;
}

/** Gateways that the node has for a site, of both families. */
const membersOf = ({ connectivity }: NodeReport, site: string): Map<string, Member> => {
  const members = new Map<string, Member>();
  for (const group of Object.values(connectivity?.groups ?? {})) {
    if (group.site !== site) continue;
    for (const [name, { isActive, reachesSite }] of Object.entries(group.members)) {
      const known = members.get(name);
      members.set(name, {
        isUsed: isActive || known?.isUsed === true,
        isDenied: reachesSite === false || known?.isDenied === true,
      });
    }
  }
  return members;
};

/** A peer that answers is not healthy for the site when it returns no echo, or denies the site. */
const stateOf = (peer: PeerRow, isDenied: boolean): Pick<NodeCell, 'state' | 'why'> => {
  const state = worstState(peer);
  if (healths(peer).length === 0) return { state: 'Unknown', why: 'the node does not probe it' };
  if (state !== 'Healthy') return { state };
  if (healths(peer).some(({ forwards }) => forwards === false))
    return { state: 'Degraded', why: 'it answers, and returns no echo' };
  return isDenied ? { state: 'Degraded', why: 'it says that it does not reach the site' } : { state };
};

const pathOf = (peer: PeerStatus): string =>
  Object.keys(peer.wireGuard).length === 0 ? `Direct, by ${peer.protocol}` : pathsOf(peer);

const cellOf = (name: string, peer: PeerStatus | undefined, member: Member | undefined): NodeCell => {
  const used = member ? { isUsed: member.isUsed } : {};
  if (!peer) return { ...unknownCell('the node does not probe it'), ...used };
  const row: PeerRow = { ...peer, name };
  const reasons = Object.values(peer.wireGuard).flatMap(({ pathReason }) => pathReason ?? []);
  return {
    ...stateOf(row, member?.isDenied === true),
    ...used,
    ...{ rttMs: rttOf(row), lossRatio: lossOf(row), pathMtuBytes: mtuOf(row), path: pathOf(peer) },
    pathReasons: [...new Set(reasons)],
  };
};

type Nodes = ClusterView['nodes'];
export type NodeCells = Readonly<Record<string, NodeCell>>;

const siteOf = (nodes: Nodes, name: string): string | undefined =>
  Object.hasOwn(nodes, name) ? nodes[name]!.site : undefined;

/** What one node says of the way to a site. */
const rowOf = (report: NodeReport, to: string, nodes: Nodes): Record<string, NodeCell> => {
  const peers = report.connectivity?.peers ?? {};
  const members = membersOf(report, to);
  const names = new Set([...members.keys(), ...Object.keys(peers).filter((name) => siteOf(nodes, name) === to)]);
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      cellOf(name, Object.hasOwn(peers, name) ? peers[name] : undefined, members.get(name)),
    ]),
  );
};

export interface NodeMatrix {
  readonly columns: readonly string[];
  readonly cells: Readonly<Record<string, NodeCells>>;
}

/** Where no node says what it probes: gateways of the other site; within a site, its nodes. */
const supposedColumns = (nodes: Nodes, from: string, to: string): string[] =>
  Object.entries(nodes).flatMap(([name, { site, pools }]) =>
    site === to && (from === to || pools.length > 0) ? [name] : [],
  );

/** @param known by node of the source: rows of others are Unknown in every column */
export const nodeMatrix = (
  { from, to, nodes }: { readonly from: string; readonly to: string; readonly nodes: Nodes },
  known: ReadonlyMap<string, Known>,
): NodeMatrix => {
  const rows = [...known].map(
    ([name, each]) => [name, each, 'report' in each ? rowOf(each.report, to, nodes) : {}] as const,
  );
  const said = new Set(rows.flatMap(([, , cells]) => Object.keys(cells)));
  const columns = (said.size > 0 ? [...said] : supposedColumns(nodes, from, to)).sort(compareNames);
  const unknown = (name: string, why: string): Record<string, NodeCell> =>
    Object.fromEntries(columns.flatMap((column) => (column === name ? [] : [[column, unknownCell(why)]])));
  return {
    columns,
    cells: Object.fromEntries(
      rows.map(([name, each, cells]) => [name, 'why' in each ? unknown(name, each.why) : cells]),
    ),
  };
};

const isWhole = ({ state, path }: NodeCell): boolean => state === 'Healthy' && !path.includes('Relayed');

/** A node that has no cell reaches nothing that anybody knows of. */
export const isAffected = (cells: NodeCells | undefined): boolean => {
  const all = Object.values(cells ?? {});
  return all.length === 0 || !all.every(isWhole);
};

/** Nodes of the site whose names have the words; those that something is wrong with come first. */
export const sourceNodes = (nodes: Nodes, site: string, q: string | undefined): string[] =>
  Object.keys(nodes)
    .filter((name) => nodes[name]!.site === site && hasWords(q, [name]))
    .sort((a, b) => urgencyOf(nodes[a]!.state) - urgencyOf(nodes[b]!.state) || compareNames(a, b));

const mtuText = ({ pathMtuBytes }: Pick<NodeCell, 'pathMtuBytes'>, path: string): string => {
  if (pathMtuBytes !== undefined) return `${pathMtuBytes} bytes`;
  return path === '' ? UNKNOWN : 'as the device';
};

/** All of a cell as pairs of term and text. */
export const nodeCellTexts = ({ state, why, isUsed, path, pathReasons, ...measured }: NodeCell): [string, string][] => [
  ['State', state],
  ...(why === undefined ? [] : [['Because', why] as [string, string]]),
  ...(isUsed === undefined
    ? []
    : [['Packets to the site', isUsed ? 'go there now' : 'do not go there now'] as [string, string]]),
  ['Round trip', roundTrip(measured.rttMs)],
  ['Loss', percent(measured.lossRatio)],
  ['Path MTU', mtuText(measured, path)],
  ['Path', path === '' ? UNKNOWN : path],
  ...(pathReasons.length === 0 ? [] : [['Why that path', pathReasons.join('; ')] as [string, string]]),
];

export const NOT_PROBED = 'it is not on the way of this node, which does not probe it';

export const nodeCellLabel = (from: string, to: string, cell: NodeCell | undefined): string =>
  cell ? labelOf(from, to, nodeCellTexts(cell)) : `${from} to ${to}: ${NOT_PROBED}`;

/** D, R or both; nothing where nothing is known. */
export const pathLetters = (path: string): string =>
  [...(path.includes('Direct') ? ['D'] : []), ...(path.includes('Relayed') ? ['R'] : [])].join('+');
