import { useCallback, useMemo, useState } from 'react';
import { useQuery } from '../app/address.ts';

type Place = readonly [row: number, column: number];

const indexOf = (names: readonly string[], name: string | undefined): number =>
  name === undefined ? 0 : Math.max(0, names.indexOf(name));

/** Which cell of a matrix is chosen, by the names in the address, and which one is told of: that which the pointer is at, or the chosen one. */
export const useMatrixPlace = (rows: readonly string[], columns: readonly string[]) => {
  const [{ from, to }, change] = useQuery();
  const [pointed, onPoint] = useState<Place>();
  const active = useMemo((): Place => [indexOf(rows, from), indexOf(columns, to)], [rows, columns, from, to]);
  const onActive = useCallback(
    ([row, column]: Place) => change({ from: rows[row], to: columns[column] }),
    [rows, columns, change],
  );
  const [row, column] = pointed ?? active;
  return { active, onActive, onPoint, source: rows[row], destination: columns[column] };
};
