import { useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useNodeReports } from '../app/node-reports.ts';
import { useSession, useView } from '../app/session.ts';
import { StateBadge } from '../parts/badges.tsx';
import { Facts } from '../parts/facts.tsx';
import { NodeLink, SiteLink } from '../parts/links.tsx';
import { MatrixFilters } from '../parts/matrix-filters.tsx';
import { MatrixGrid } from '../parts/matrix-grid.tsx';
import { MatrixLegend } from '../parts/matrix-legend.tsx';
import { useMatrixPlace } from '../parts/matrix-place.ts';
import type { CellKind } from '../parts/matrix-row.tsx';
import { Page } from '../parts/page.tsx';
import { hrefOf } from '../view/address.ts';
import { count, ofAll } from '../view/format.ts';
import { measureOf, measureText } from '../view/matrix.ts';
import {
  isAffected,
  type Known,
  type NodeCell,
  nodeCellLabel,
  nodeCellTexts,
  nodeMatrix,
  NOT_PROBED,
  pathLetters,
  sourceNodes,
} from '../view/node-matrix.ts';
import { compareNames } from '../view/sort.ts';

/** Nodes of the source that reports are asked of; the others are found by searching. */
const MOST_ROWS = 100;
const STATES = ['Healthy', 'Degraded', 'Unhealthy', 'Unknown'] as const;
const SILENT: Known = { why: 'the node does not report' };
const LOADING: Known = { why: 'its report is being loaded' };

const KIND: CellKind<NodeCell> = {
  look: (cell, measure) => ({
    ...{ state: cell.state, isRelayed: cell.path.includes('Relayed') },
    text: measureText(cell, pathLetters(cell.path), measure),
  }),
  label: nodeCellLabel,
};

interface DetailsProps {
  readonly from: string | undefined;
  readonly to: string | undefined;
  readonly cell: NodeCell | undefined;
}

const Details = ({ from, to, cell }: DetailsProps) => {
  if (from === undefined || to === undefined) return null;
  const facts = (cell ? nodeCellTexts(cell) : []).map(
    ([term, text]) => [term, term === 'State' ? <StateBadge key={term} state={text} /> : text] as const,
  );
  return (
    <section aria-labelledby="details" className="card details">
      <h2 id="details">
        <NodeLink name={from} /> to <NodeLink name={to} />
      </h2>
      {cell ? <Facts facts={facts} /> : <p>{from === to ? 'The node itself.' : `None: ${NOT_PROBED}.`}</p>}
    </section>
  );
};

/** What nodes of the source say, those that do not report too. */
const useKnown = (names: readonly string[]): ReadonlyMap<string, Known> => {
  const { token = '' } = useSession();
  const nodes = useView((view) => view.nodes);
  const reports = useNodeReports(
    names.filter((name) => nodes[name]?.source === 'report'),
    token,
  );
  return useMemo(
    () =>
      new Map(
        names.map(
          (name) => [name, nodes[name]?.source === 'report' ? (reports.get(name) ?? LOADING) : SILENT] as const,
        ),
      ),
    [names, nodes, reports],
  );
};

const useNodeMatrix = (source: string, destination: string) => {
  const nodes = useView((view) => view.nodes);
  const [{ q, only }] = useQuery();
  const found = useMemo(() => sourceNodes(nodes, source, q), [nodes, source, q]);
  const key = JSON.stringify(found.slice(0, MOST_ROWS).sort(compareNames));
  const names = useMemo(() => JSON.parse(key) as string[], [key]);
  const known = useKnown(names);
  const { columns, cells } = useMemo(
    () => nodeMatrix({ from: source, to: destination, nodes }, known),
    [source, destination, nodes, known],
  );
  const rows = useMemo(
    () => (only === 'affected' ? names.filter((name) => isAffected(cells[name])) : names),
    [names, cells, only],
  );
  const isLoading = [...known.values()].includes(LOADING);
  return { rows, columns, cells, asked: names.length, total: found.length, isLoading };
};

const Explained = ({ source, destination }: { readonly source: string; readonly destination: string }) => (
  <p>
    Rows are nodes of <SiteLink name={source} />, columns what they probe on the way to <SiteLink name={destination} />:
    its nodes, and gateways for it. As the nodes themselves report, every 10 s.{' '}
    <a href={hrefOf(['matrix'], { from: source, to: destination })}>All sites</a>
    {source !== destination && (
      <>
        , <a href={hrefOf(['matrix', destination, source])}>the way back</a>
      </>
    )}
    .
  </p>
);

export const NodeMatrixPage = ({ source, destination }: { readonly source: string; readonly destination: string }) => {
  const { rows, columns, cells, asked, total, isLoading } = useNodeMatrix(source, destination);
  const [{ show }] = useQuery();
  const { active, onActive, onPoint, source: from, destination: to } = useMatrixPlace(rows, columns);
  return (
    <Page title={`Reach by node: ${source} to ${destination}`}>
      <Explained {...{ source, destination }} />
      <MatrixFilters
        search="Nodes"
        affected="nodes with a way that is not whole, or relayed"
        output={`${ofAll(rows.length, total)} nodes${isLoading ? ', loading' : ''}`}
      />
      {asked < total && (
        <p>
          {count(asked)} of {count(total)} nodes are asked, those that something is wrong with first. Search for others.
        </p>
      )}
      <MatrixLegend states={STATES} none="not on the way of the node" />
      {rows.length === 0 || columns.length === 0 ? (
        <p>{rows.length === 0 ? 'No node matches.' : 'No node says what it probes on that way.'}</p>
      ) : (
        <div className="beside">
          <MatrixGrid
            label={`Reach by node, ${source} to ${destination}: rows are nodes, columns what they probe`}
            values={cells}
            measure={measureOf(show)}
            kind={KIND}
            {...{ from: rows, to: columns, active, onActive, onPoint }}
          />
          <Details {...{ from, to }} cell={cells[from ?? '']?.[to ?? '']} />
        </div>
      )}
    </Page>
  );
};
