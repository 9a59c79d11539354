import { hasWords } from './problems.ts';
import type { NodeView } from './types.ts';

export interface NodeRow extends NodeView {
  readonly name: string;
}

const rows = new WeakMap<NodeView, NodeRow>();

/** The same object for a node that has not changed, so that its row is not drawn anew. */
const rowOf = (name: string, node: NodeView): NodeRow => {
  const known = rows.get(node);
  if (known?.name === name) return known;
  const row = { ...node, name };
  rows.set(node, row);
  return row;
};

export const nodeRows = (nodes: Readonly<Record<string, NodeView>>): NodeRow[] =>
  Object.entries(nodes).map(([name, node]) => rowOf(name, node));

export interface NodeFilter {
  readonly q?: string | undefined;
  readonly site?: string | undefined;
  readonly pool?: string | undefined;
  readonly state?: string | undefined;
  readonly source?: string | undefined;
  readonly version?: string | undefined;
  /** problems: has some. relayed: has peers over the relay. */
  readonly only?: string | undefined;
}

/** In place of a site's name: in none. */
export const NO_SITE = '(none)';

export const filterNodes = (nodes: readonly NodeRow[], filter: NodeFilter): NodeRow[] => {
  const { q, site, pool, state, source, version, only } = filter;
  return nodes.filter(
    (node) =>
      (!site || (site === NO_SITE ? node.site === undefined : node.site === site)) &&
      (!pool || node.pools.includes(pool)) &&
      (!state || node.state === state) &&
      (!source || node.source === source) &&
      (!version || node.agentVersion === version) &&
      (only !== 'problems' || node.problems > 0) &&
      (only !== 'relayed' || (node.peers?.relayed ?? 0) > 0) &&
      hasWords(q, [node.name, node.site, node.agentVersion, ...node.pools]),
  );
};

/** The worst first. */
const STATES = ['Unreachable', 'Partial', 'Degraded', 'Unknown', 'Healthy', 'Reachable'];
export const urgencyOf = (state: string): number => STATES.indexOf(state);

const SOURCES: Readonly<Record<NodeView['source'], string>> = {
  report: 'its own report',
  api: 'conditions of its Node object',
  none: 'nothing',
};
export const sourceText = (source: NodeView['source']): string => SOURCES[source];
