import { memo, useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { StateBadge } from '../parts/badges.tsx';
import { useCut } from '../parts/cut.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Choice, SearchField } from '../parts/filters.tsx';
import { Names, NodeLink, SiteLink } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { hrefOf } from '../view/address.ts';
import { count, ofAll } from '../view/format.ts';
import { urgencyOf } from '../view/nodes.ts';
import { hasWords } from '../view/problems.ts';
import { compareNames } from '../view/sort.ts';
import type { PoolView } from '../view/types.ts';
import { STATES } from './sites-page.tsx';

interface Row {
  readonly name: string;
  readonly gateway: PoolView['gateways'][string];
  readonly sites: number;
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'name',
    title: 'Gateway',
    isHeader: true,
    width: 12,
    cell: ({ name }) => <NodeLink name={name} />,
    sortBy: ({ name }) => name,
  },
  {
    id: 'state',
    title: 'State',
    width: 8,
    cell: ({ gateway }) => <StateBadge state={gateway.state} />,
    sortBy: ({ gateway }) => urgencyOf(gateway.state),
  },
  {
    ...{ id: 'count', title: 'Active for', width: 8, isNumber: true },
    cell: ({ gateway, sites }) => `${count(gateway.activeFor.length)} of ${count(sites)} sites`,
    sortBy: ({ gateway }) => gateway.activeFor.length,
  },
  { id: 'sites', title: 'Sites', width: 22, cell: ({ gateway }) => <Names names={gateway.activeFor} of={SiteLink} /> },
];
const USUAL = { by: 'name', isDescending: false };
const nameOf = ({ name }: Row): string => name;

const Pool = memo(function Pool({ name, pool }: { readonly name: string; readonly pool: PoolView }) {
  const { state, gateways, connectedSites } = pool;
  const rows = useMemo(
    () => Object.entries(gateways).map(([name, gateway]): Row => ({ name, gateway, sites: connectedSites.length })),
    [gateways, connectedSites],
  );
  const served = new Set(rows.flatMap(({ gateway }) => gateway.activeFor));
  const without = connectedSites.filter((site) => !served.has(site));
  return (
    <section aria-label={`Pool ${name}`} className="card">
      <h2>
        {name} <StateBadge state={state} />
      </h2>
      <p>
        {count(rows.length)} gateways for {count(connectedSites.length)} sites:{' '}
        <Names names={connectedSites} of={SiteLink} />. <a href={hrefOf(['nodes'], { pool: name })}>Its nodes</a>
      </p>
      {without.length > 0 && (
        <p className="error">
          No gateway carries traffic for: <Names names={without} of={SiteLink} />
        </p>
      )}
      <DataTable
        caption={`Gateways of pool ${name}`}
        columns={COLUMNS}
        usualSort={USUAL}
        empty="It has no gateways."
        {...{ rows, nameOf }}
      />
    </section>
  );
});

/** Each has a table of its own: those that something is wrong with come first, and the others are found by searching. */
const MOST_POOLS = 20;

export const PoolsPage = () => {
  const pools = useView((view) => view.pools);
  const [{ q, state }] = useQuery();
  const names = Object.keys(pools).sort(
    (a, b) => urgencyOf(pools[a]!.state) - urgencyOf(pools[b]!.state) || compareNames(a, b),
  );
  const found = names.filter(
    (name) => (!state || pools[name]!.state === state) && hasWords(q, [name, ...Object.keys(pools[name]!.gateways)]),
  );
  const { shown, isCut, showAll } = useCut(found, MOST_POOLS);
  return (
    <Page title="Pools and gateways">
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search pool or gateway" />
        <Choice label="State" name="state" options={STATES} />
        <output>{ofAll(shown.length, names.length)} pools</output>
      </form>
      {names.length === 0 && <p>There are no pools.</p>}
      {shown.map((name) => (
        <Pool key={name} name={name} pool={pools[name]!} />
      ))}
      {isCut && (
        <button type="button" onClick={showAll}>
          Show all {count(found.length)}
        </button>
      )}
    </Page>
  );
};
