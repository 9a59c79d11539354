import { useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useView } from '../app/session.ts';
import { type Column, DataTable } from '../parts/data-table.tsx';
import { Choice, SearchField } from '../parts/filters.tsx';
import { Names, NodeLink } from '../parts/links.tsx';
import { Page } from '../parts/page.tsx';
import { count, ofAll } from '../view/format.ts';
import { hasWords } from '../view/problems.ts';

interface Row {
  readonly address: string;
  readonly owners: readonly string[];
}

const stateOf = ({ owners }: Row): readonly [tone: string, text: string] => {
  if (owners.length === 1) return ['good', '● One owner'];
  return owners.length === 0 ? ['unknown', '? No owner reports'] : ['bad', '✕ Conflict'];
};

const COLUMNS: readonly Column<Row>[] = [
  {
    id: 'address',
    title: 'Address',
    isHeader: true,
    width: 12,
    cell: ({ address }) => address,
    sortBy: ({ address }) => address,
  },
  {
    ...{ id: 'state', title: 'State', width: 9 },
    cell: (row) => <span className={`badge ${stateOf(row)[0]}`}>{stateOf(row)[1]}</span>,
    sortBy: ({ owners }) => (owners.length === 1 ? 2 : Number(owners.length === 0)),
  },
  {
    id: 'count',
    title: 'Owners',
    width: 5,
    isNumber: true,
    cell: ({ owners }) => count(owners.length),
    sortBy: ({ owners }) => owners.length,
  },
  {
    id: 'owners',
    title: 'Nodes that answer for it',
    width: 18,
    cell: ({ owners }) => <Names names={owners} of={NodeLink} />,
    sortBy: ({ owners }) => owners[0],
  },
];
const USUAL = { by: 'state', isDescending: false };
const nameOf = ({ address }: Row): string => address;
const ONLY = [['conflict', 'conflicts']] as const;

export const EgressPage = () => {
  const egress = useView((view) => view.egress);
  const [{ q, only }] = useQuery();
  const all = useMemo(
    () => Object.entries(egress).map(([address, { owners }]): Row => ({ address, owners })),
    [egress],
  );
  const rows = all.filter(
    ({ address, owners }) => (only !== 'conflict' || owners.length > 1) && hasWords(q, [address, ...owners]),
  );
  return (
    <Page title="Egress addresses">
      <p>By what nodes report: who answers for an address now. More than one owner is a fault.</p>
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search" />
        <Choice label="Only" name="only" options={ONLY} />
        <output>{ofAll(rows.length, all.length)} addresses</output>
      </form>
      <DataTable
        caption="Egress addresses"
        columns={COLUMNS}
        usualSort={USUAL}
        empty={all.length === 0 ? 'No node reports an egress address.' : 'No address matches.'}
        {...{ rows, nameOf }}
      />
    </Page>
  );
};
