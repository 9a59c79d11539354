import { useDeferredValue, useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { DataTable } from '../parts/data-table.tsx';
import { Choice, NameField, SearchField } from '../parts/filters.tsx';
import { NODE_COLUMNS, NODE_SORT, nodeName } from '../parts/node-columns.tsx';
import { Page } from '../parts/page.tsx';
import { ofAll } from '../view/format.ts';
import { filterNodes, NO_SITE, nodeRows } from '../view/nodes.ts';
import { compareNames } from '../view/sort.ts';
import { STATES } from './sites-page.tsx';

const ONLY = [
  ['problems', 'with problems'],
  ['relayed', 'with relayed peers'],
] as const;
const SOURCES = [
  ['report', 'report (its own)'],
  ['api', 'api (its Node object)'],
  ['none', 'none'],
] as const;

const Filters = ({ text }: { readonly text: string }) => {
  const sites = useView((view) => view.sites);
  const pools = useView((view) => view.pools);
  const nodes = useView((view) => view.nodes);
  const siteNames = useMemo(() => [...Object.keys(sites).sort(compareNames), NO_SITE], [sites]);
  const versions = useMemo(
    () => [...new Set(Object.values(nodes).flatMap(({ agentVersion }) => agentVersion ?? []))].sort(compareNames),
    [nodes],
  );
  return (
    <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <SearchField label="Search" />
      <NameField label="Site" name="site" names={siteNames} />
      <Choice label="Pool" name="pool" options={Object.keys(pools).sort(compareNames)} />
      <Choice label="State" name="state" options={STATES} />
      <Choice label="Source" name="source" options={SOURCES} />
      <Choice label="Agent" name="version" options={versions} />
      <Choice label="Only" name="only" options={ONLY} />
      <output>{text} nodes</output>
    </form>
  );
};

export const NodesPage = () => {
  const nodes = useView((view) => view.nodes);
  const [query] = useQuery();
  const filter = useDeferredValue(query);
  const all = useMemo(() => nodeRows(nodes), [nodes]);
  const rows = useMemo(() => filterNodes(all, filter), [all, filter]);
  return (
    <Page title="Nodes">
      <Filters text={ofAll(rows.length, all.length)} />
      <DataTable
        caption="Nodes"
        columns={NODE_COLUMNS}
        usualSort={NODE_SORT}
        nameOf={nodeName}
        empty="No node matches."
        rows={rows}
      />
    </Page>
  );
};
