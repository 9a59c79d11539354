import { count, UNKNOWN } from '../view/format.ts';
import { type NodeRow, sourceText, urgencyOf } from '../view/nodes.ts';
import { Age } from './age.tsx';
import { StateBadge } from './badges.tsx';
import type { Column } from './data-table.tsx';
import { NodeLink, SiteLink } from './links.tsx';

/** Columns of tables of nodes. */

const Source = ({ row: { source, lastReportTime } }: { readonly row: NodeRow }) => (
  <>
    <span title={sourceText(source)}>{source}</span>
    {lastReportTime !== undefined && (
      <span className="muted">
        {' '}
        (<Age of={lastReportTime} />)
      </span>
    )}
  </>
);

const site: Column<NodeRow> = {
  ...{ id: 'site', title: 'Site', width: 9 },
  cell: ({ site }) => (site === undefined ? 'none' : <SiteLink name={site} />),
  sortBy: ({ site }) => site,
};

export const NODE_COLUMNS_OF_SITE: readonly Column<NodeRow>[] = [
  {
    id: 'name',
    title: 'Node',
    isHeader: true,
    width: 14,
    cell: ({ name }) => <NodeLink name={name} />,
    sortBy: ({ name }) => name,
  },
  {
    id: 'state',
    title: 'State',
    width: 9,
    cell: ({ state }) => <StateBadge state={state} />,
    sortBy: ({ state }) => urgencyOf(state),
  },
  {
    ...{ id: 'problems', title: 'Problems', width: 7, isNumber: true },
    cell: ({ problems }) => count(problems),
    sortBy: ({ problems }) => problems,
  },
  {
    ...{ id: 'peers', title: 'Peers healthy', width: 8, isNumber: true },
    cell: ({ peers }) => (peers ? `${count(peers.healthy)} of ${count(peers.total)}` : UNKNOWN),
    // By those that do not answer: how many there are says nothing.
    sortBy: ({ peers }) => peers && peers.total - peers.healthy,
  },
  {
    ...{ id: 'relayed', title: 'Relayed', width: 6, isNumber: true },
    cell: ({ peers }) => (peers ? count(peers.relayed) : UNKNOWN),
    sortBy: ({ peers }) => peers?.relayed,
  },
  { id: 'source', title: 'Source', width: 9, cell: (row) => <Source row={row} />, sortBy: ({ source }) => source },
  { id: 'pools', title: 'Pools', width: 8, cell: ({ pools }) => pools.join(', '), sortBy: ({ pools }) => pools[0] },
  {
    id: 'version',
    title: 'Agent',
    width: 6,
    cell: ({ agentVersion }) => agentVersion ?? UNKNOWN,
    sortBy: ({ agentVersion }) => agentVersion,
  },
];

export const NODE_COLUMNS: readonly Column<NodeRow>[] = NODE_COLUMNS_OF_SITE.toSpliced(1, 0, site);
export const NODE_SORT = { by: 'state', isDescending: false };
export const nodeName = ({ name }: NodeRow): string => name;
