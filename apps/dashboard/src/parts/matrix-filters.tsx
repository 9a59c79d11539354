import { Choice, SearchField } from './filters.tsx';

const MEASURES = [
  ['rtt', 'Round trip (ms)'],
  ['loss', 'Loss (%)'],
  ['mtu', 'Path MTU (bytes)'],
  ['path', 'Direct (D) or relayed (R)'],
] as const;

interface MatrixFiltersProps {
  readonly search: string;
  /** What a row is to be shown for, of those that something is wrong with. */
  readonly affected: string;
  /** How many are shown. */
  readonly output: string;
}

/** What of a matrix is shown; all of it stands in the address. */
export const MatrixFilters = ({ search, affected, output }: MatrixFiltersProps) => (
  <form className="filters" role="search" onSubmit={(event) => event.preventDefault()}>
    <SearchField label={search} />
    <Choice label="Show" name="show" options={MEASURES} all="State" />
    <Choice label="Only" name="only" options={[['affected', affected]]} />
    <output>{output}</output>
  </form>
);
