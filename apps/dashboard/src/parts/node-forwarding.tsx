import { useMemo } from 'react';
import { useQuery } from '../app/address.ts';
import { useNodeForwarding } from '../app/node-forwarding.ts';
import { useSession } from '../app/session.ts';
import { count, ofAll } from '../view/format.ts';
import { filterForwarding, type ForwardingRow, forwardingRows, urgencyOfEntry, waysText } from '../view/forwarding.ts';
import { Age } from './age.tsx';
import { type Column, DataTable } from './data-table.tsx';
import { Choice, SearchField } from './filters.tsx';

const COLUMNS: readonly Column<ForwardingRow>[] = [
  {
    ...{ id: 'key', title: 'Destination or group', width: 14, isHeader: true },
    cell: ({ key }) => key,
    sortBy: ({ key }) => key,
  },
  { ...{ id: 'table', title: 'Table', width: 9 }, cell: ({ table }) => table, sortBy: ({ table }) => table },
  {
    ...{ id: 'state', title: 'State', width: 7 },
    cell: ({ state }) => state,
    sortBy: ({ state }) => urgencyOfEntry(state),
  },
  { ...{ id: 'wanted', title: 'Planned', width: 18 }, cell: ({ wanted }) => waysText(wanted) },
  { ...{ id: 'present', title: 'In the kernel', width: 18 }, cell: ({ present }) => waysText(present) },
];
const BY_STATE = { by: 'state', isDescending: false };
const DIFFER = [['yes', 'that differ']] as const;
const rowId = ({ id }: ForwardingRow): string => id;

const Entries = ({ rows, total }: { readonly rows: readonly ForwardingRow[]; readonly total: number }) => {
  const [{ entries, differ }] = useQuery();
  const found = useMemo(() => filterForwarding(rows, { entries, differ }), [rows, entries, differ]);
  return (
    <>
      <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <SearchField label="Search entries" name="entries" />
        <Choice label="Only" name="differ" options={DIFFER} />
        <output>{ofAll(found.length, total)} entries</output>
      </form>
      <DataTable
        caption="Entries and routes"
        columns={COLUMNS}
        usualSort={BY_STATE}
        sortName="order"
        nameOf={rowId}
        rows={found}
        empty="None."
      />
    </>
  );
};

/** Map entries and routes of a node, as planned and as its kernel has them: read at the node when somebody asks for them. */
export const NodeForwarding = ({ name }: { readonly name: string }) => {
  const { token = '' } = useSession();
  const [{ answer, error, isAsking }, ask] = useNodeForwarding(name, token);
  const rows = useMemo(() => (answer ? forwardingRows(answer.forwarding) : []), [answer]);
  return (
    <section aria-labelledby="forwarding">
      <h2 id="forwarding">Entries and routes</h2>
      <p>
        <button type="button" onClick={ask} disabled={isAsking}>
          {answer ? 'Read again' : 'Read from the node'}
        </button>{' '}
        <span role="status">
          {isAsking && 'The node is asked with its next report.'}
          {error !== undefined && `They cannot be read: ${error}.`}
        </span>
      </p>
      {answer && (
        <>
          <p>
            Read <Age of={answer.forwarding.readTime} />, by the clock of the node: {count(answer.forwarding.different)}{' '}
            of {count(answer.forwarding.total)} differ from the plan.
          </p>
          <Entries rows={rows} total={answer.forwarding.total} />
        </>
      )}
    </section>
  );
};
