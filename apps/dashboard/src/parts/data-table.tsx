import { type ReactNode, memo, useMemo, useState } from 'react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useQuery } from '../app/address.ts';
import { formatSort, nextSort, parseSort, type Sort, sortRows, type SortValue } from '../view/sort.ts';

export interface Column<Row> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: Row) => ReactNode;
  /** Absent: the table cannot be sorted by it. */
  readonly sortBy?: (row: Row) => SortValue;
  readonly isNumber?: boolean;
  /** It names the row. */
  readonly isHeader?: boolean;
  /** Share of the width, in rem. */
  readonly width: number;
}

interface DataTableProps<Row> {
  readonly caption: string;
  readonly rows: readonly Row[];
  /** Made once, outside of the component. */
  readonly columns: readonly Column<Row>[];
  readonly nameOf: (row: Row) => string;
  readonly usualSort: Sort;
  /** Name of the sort in the address, where a page has more than one table. */
  readonly sortName?: string;
  readonly empty: string;
}

const HeaderCell = <Row,>({
  column,
  sort,
  onSort,
}: {
  readonly column: Column<Row>;
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
}) => {
  const isSorted = sort.by === column.id;
  const direction = sort.isDescending ? 'descending' : 'ascending';
  const arrow = sort.isDescending ? '▼' : '▲';
  return (
    <th scope="col" className={column.isNumber ? 'number' : undefined} aria-sort={isSorted ? direction : undefined}>
      {column.sortBy ? (
        <button type="button" className="sort" onClick={() => onSort(nextSort(sort, column.id))}>
          {column.title} <span aria-hidden="true">{isSorted ? arrow : ''}</span>
        </button>
      ) : (
        column.title
      )}
    </th>
  );
};

interface BodyRowProps<Row> {
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly index: number;
  readonly measure?: (element: HTMLTableRowElement | null) => void;
}

/** Drawn anew only when its row is another object, or stands elsewhere. */
const BodyRow = memo(function BodyRow({ row, columns, index, measure }: BodyRowProps<unknown>) {
  return (
    <tr ref={measure} data-index={index} aria-rowindex={index + 2}>
      {columns.map(({ id, cell, isHeader, isNumber }) =>
        isHeader ? (
          <th key={id} scope="row">
            {cell(row)}
          </th>
        ) : (
          <td key={id} className={isNumber ? 'number' : undefined}>
            {cell(row)}
          </td>
        ),
      )}
    </tr>
  );
}) as <Row>(props: BodyRowProps<Row>) => ReactNode;

/** From so many rows on, only those in sight are in the document. */
const MOST_WHOLE = 150;
const ROW_PX = 37;

const Gap = ({ height, span }: { readonly height: number; readonly span: number }) =>
  height > 0 ? (
    <tr className="gap" aria-hidden="true">
      <td colSpan={span} style={{ height }} />
    </tr>
  ) : null;

type BodyProps<Row> = Pick<DataTableProps<Row>, 'rows' | 'columns' | 'nameOf'>;

const WholeBody = <Row,>({ rows, columns, nameOf }: BodyProps<Row>) => (
  <tbody>
    {rows.map((row, index) => (
      <BodyRow key={nameOf(row)} {...{ row, columns, index }} />
    ))}
  </tbody>
);

const WindowBody = <Row,>({
  rows,
  columns,
  nameOf,
  region,
}: BodyProps<Row> & { readonly region: HTMLElement | null }) => {
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => region,
    estimateSize: () => ROW_PX,
    getItemKey: (index) => nameOf(rows[index]!),
    overscan: 12,
    scrollMargin: ROW_PX,
  });
  const items = virtualizer.getVirtualItems();
  const [first, last] = [items[0], items.at(-1)];
  return (
    <tbody>
      <Gap height={(first?.start ?? ROW_PX) - ROW_PX} span={columns.length} />
      {items.map(({ index, key }) => (
        <BodyRow key={key as string} row={rows[index]!} {...{ columns, index, measure: virtualizer.measureElement }} />
      ))}
      <Gap height={virtualizer.getTotalSize() + ROW_PX - (last?.end ?? 0)} span={columns.length} />
    </tbody>
  );
};

/** A table that is sorted by its headers, with its sort in the address. */
export const DataTable = <Row,>(props: DataTableProps<Row>) => {
  const { caption, rows, columns, nameOf, usualSort, sortName = 'sort', empty } = props;
  const [query, change] = useQuery();
  // A state: the body looks for it once it is there.
  const [region, setRegion] = useState<HTMLElement | null>(null);
  const text = query[sortName];
  const sort = useMemo(() => parseSort(text, usualSort), [text, usualSort]);
  const sorted = useMemo(() => {
    const sortBy = columns.find(({ id }) => id === sort.by)?.sortBy;
    return sortRows(rows, sortBy ?? (() => undefined), nameOf, sort.isDescending);
  }, [rows, columns, nameOf, sort]);
  const isWindow = sorted.length > MOST_WHOLE;
  const width = columns.reduce((sum, column) => sum + column.width, 0);
  if (rows.length === 0) return <p>{empty}</p>;
  const onSort = (next: Sort): void => change({ [sortName]: formatSort(next) });
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keyboard
    <div
      ref={setRegion}
      className={`table ${isWindow ? 'window' : ''}`}
      role="region"
      aria-label={caption}
      tabIndex={0}
    >
      <table style={{ minWidth: `${width}rem` }} aria-rowcount={rows.length + 1}>
        <caption className="unseen">{caption}</caption>
        <colgroup>
          {columns.map((column) => (
            <col key={column.id} style={{ width: `${(column.width / width) * 100}%` }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((column) => (
              <HeaderCell key={column.id} {...{ column, sort, onSort }} />
            ))}
          </tr>
        </thead>
        {isWindow ? (
          <WindowBody rows={sorted} {...{ columns, nameOf }} region={region} />
        ) : (
          <WholeBody rows={sorted} {...{ columns, nameOf }} />
        )}
      </table>
    </div>
  );
};
