import { useId } from 'react';
import { useQuery } from '../app/address.ts';

/** Filters whose values stand in the address. */

export const SearchField = ({ label, name = 'q' }: { readonly label: string; readonly name?: string }) => {
  const [query, change] = useQuery();
  return (
    <label className="field">
      <span>{label}</span>
      <input type="search" value={query[name] ?? ''} onChange={({ target }) => change({ [name]: target.value })} />
    </label>
  );
};

interface ChoiceProps {
  readonly label: string;
  readonly name: string;
  /** Values, or values with their texts. */
  readonly options: readonly (string | readonly [value: string, text: string])[];
  /** Of no value. */
  readonly all?: string;
}

export const Choice = ({ label, name, options, all = 'All' }: ChoiceProps) => {
  const [query, change] = useQuery();
  const value = query[name] ?? '';
  const pairs = options.map((option) => (typeof option === 'string' ? ([option, option] as const) : option));
  const isKnown = value === '' || pairs.some(([each]) => each === value);
  return (
    <label className="field">
      <span>{label}</span>
      <select value={value} onChange={({ target }) => change({ [name]: target.value })}>
        <option value="">{all}</option>
        {!isKnown && <option value={value}>{value}</option>}
        {pairs.map(([each, text]) => (
          <option key={each} value={each}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
};

/** A long list of names to choose from by typing. */
export const NameField = ({
  label,
  name,
  names,
}: Omit<ChoiceProps, 'options'> & { readonly names: readonly string[] }) => {
  const [query, change] = useQuery();
  const list = useId();
  return (
    <label className="field">
      <span>{label}</span>
      <input list={list} value={query[name] ?? ''} onChange={({ target }) => change({ [name]: target.value })} />
      <datalist id={list}>
        {names.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
    </label>
  );
};
