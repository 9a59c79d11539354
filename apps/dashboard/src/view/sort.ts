/** By which column a table is sorted. */
export interface Sort {
  readonly by: string;
  readonly isDescending: boolean;
}

/** `name`, or `-name` from the end. */
export const parseSort = (text: string | undefined, usual: Sort): Sort => {
  if (text === undefined || text === '' || text === '-') return usual;
  return text.startsWith('-') ? { by: text.slice(1), isDescending: true } : { by: text, isDescending: false };
};

export const formatSort = ({ by, isDescending }: Sort): string => `${isDescending ? '-' : ''}${by}`;

/** After a click on a column's header: that column, and its other direction the next time. */
export const nextSort = (sort: Sort, by: string): Sort => ({ by, isDescending: sort.by === by && !sort.isDescending });

export type SortValue = string | number | undefined;

const collator = new Intl.Collator('en', { numeric: true });
/** `node-2` is before `node-10`. */
export const compareNames = (a: string, b: string): number => collator.compare(a, b);

const compareKnown = (a: string | number, b: string | number): number =>
  typeof a === 'number' && typeof b === 'number' ? a - b : compareNames(String(a), String(b));

/** Rows without a value are last in both directions; what is the same is by name. */
export const sortRows = <Row>(
  rows: readonly Row[],
  valueOf: (row: Row) => SortValue,
  nameOf: (row: Row) => string,
  isDescending: boolean,
): Row[] =>
  rows
    .map((row) => ({ row, value: valueOf(row), name: nameOf(row) }))
    .sort((a, b) => {
      const byName = compareNames(a.name, b.name);
      if (a.value === undefined || b.value === undefined)
        return Number(a.value === undefined) - Number(b.value === undefined) || byName;
      return (isDescending ? -1 : 1) * compareKnown(a.value, b.value) || byName;
    })
    .map(({ row }) => row);
