import { defaultRangeExtractor, type Range, useVirtualizer } from '@tanstack/react-virtual';
import { useMemo, useRef } from 'react';
import { CELL_PX } from './matrix-row.tsx';

interface WindowOptions {
  readonly region: () => HTMLElement | null;
  readonly size: { readonly rows: number; readonly columns: number };
  /** The cell that has the focus, or would get it: always in the document, so that Tab finds it. */
  readonly active: readonly [row: number, column: number];
  readonly width: number;
  readonly head: readonly [width: number, height: number];
}

const withIndex =
  (index: number, count: number) =>
  (range: Range): number[] =>
    [...new Set([...defaultRangeExtractor(range), ...(index < count ? [index] : [])])].sort((a, b) => a - b);

/** The same array as long as it has the same numbers. */
const useSame = (indexes: readonly number[]): readonly number[] => {
  const last = useRef(indexes);
  const key = indexes.join(' ');
  return useMemo(() => {
    if (last.current.join(' ') !== key) last.current = key === '' ? [] : key.split(' ').map(Number);
    return last.current;
  }, [key]);
};

/** Rows and columns of the matrix that are in sight. */
export const useMatrixWindow = ({ region, size, active, width, head }: WindowOptions) => {
  const shared = { getScrollElement: region, overscan: 4 };
  const rows = useVirtualizer({
    ...shared,
    count: size.rows,
    estimateSize: () => CELL_PX,
    rangeExtractor: withIndex(active[0], size.rows),
    scrollPaddingStart: head[1],
  });
  const columns = useVirtualizer({
    ...shared,
    horizontal: true,
    count: size.columns,
    estimateSize: () => width,
    rangeExtractor: withIndex(active[1], size.columns),
    scrollPaddingStart: head[0],
  });
  return {
    rows: useSame(rows.getVirtualItems().map(({ index }) => index)),
    columns: useSame(columns.getVirtualItems().map(({ index }) => index)),
    scrollTo: ([row, column]: readonly [number, number]) => {
      rows.scrollToIndex(row, { align: 'auto' });
      columns.scrollToIndex(column, { align: 'auto' });
    },
  };
};
