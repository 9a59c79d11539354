import { useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { StateBadge } from '../parts/badges.tsx';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Choice, SearchField } from '../parts/filters.tsx';
import { SiteLink } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { count, ofAll } from '../view/format.ts';
import { urgencyOf } from '../view/nodes.ts';
import { hasWords } from '../view/problems.ts';
import type { SiteView } from '../view/types.ts';

interface Row extends SiteView {
  readonly name: string;
}

export const STATES = ['Unreachable', 'Degraded', 'Unknown', 'Healthy'] as const;

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'name',
    title: 'Site',
    isHeader: true,
    width: 14,
    cell: ({ name }) => <SiteLink name={name} />,
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
    ...{ id: 'nodes', title: 'Nodes reporting', width: 9, isNumber: true },
    cell: ({ reporting, nodes }) => `${count(reporting)} of ${count(nodes)}`,
    sortBy: ({ nodes }) => nodes,
  },
  {
    id: 'silent',
    title: 'Not reporting',
    width: 7,
    isNumber: true,
    cell: ({ reporting, nodes }) => count(nodes - reporting),
    sortBy: ({ reporting, nodes }) => nodes - reporting,
  },
  {
    id: 'gateways',
    title: 'Gateways',
    width: 6,
    isNumber: true,
    cell: ({ gateways }) => count(gateways),
    sortBy: ({ gateways }) => gateways,
  },
  {
    id: 'problems',
    title: 'Problems',
    width: 7,
    isNumber: true,
    cell: ({ problems }) => count(problems),
    sortBy: ({ problems }) => problems,
  },
];
const USUAL = { by: 'state', isDescending: false };
const nameOf = ({ name }: Row): string => name;

export const SitesPage = () => {
  const sites = useView((view) => view.sites);
  const [{ q, state }] = useQuery();
  const all = useMemo(() => Object.entries(sites).map(([name, site]): Row => ({ ...site, name })), [sites]);
  const rows = all.filter((row) => (!state || row.state === state) && hasWords(q, [row.name]));
  return (
    <Page title="Sites">
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search" />
        <Choice label="State" name="state" options={STATES} />
        <output>{ofAll(rows.length, all.length)} sites</output>
      </form>
      <DataTable caption="Sites" columns={COLUMNS} usualSort={USUAL} empty="No site matches." {...{ rows, nameOf }} />
    </Page>
  );
};
