import { memo } from 'react';
import { cellLabel, cellText, type Measure, SHAPES } from '../view/matrix.ts';
import type { ReachView } from '../view/types.ts';
import { toneOf } from './badges.tsx';

/** Sizes in px, which the grid's place for each cell is computed from. */
export const CELL_PX = 28;
export const cellWidth = (measure: Measure): number => (measure === 'state' ? CELL_PX : 68);

interface CellProps {
  readonly from: string;
  readonly to: string;
  readonly reach: ReachView | undefined;
  readonly measure: Measure;
  readonly at: readonly [row: number, column: number];
  readonly left: number;
  readonly isActive: boolean;
}

const Cell = ({ from, to, reach, measure, at: [row, column], left, isActive }: CellProps) => (
  <div
    role="gridcell"
    tabIndex={isActive ? 0 : -1}
    data-row={row}
    data-column={column}
    aria-colindex={column + 2}
    aria-selected={isActive}
    aria-label={cellLabel(from, to, reach)}
    className={`cell ${reach ? toneOf(reach.state) : 'none'} ${from === to ? 'own' : ''}`}
    style={{ left, width: cellWidth(measure) - 2 }}
  >
    {reach ? (
      <>
        {SHAPES[reach.state] ?? '?'}
        {reach.relayed > 0 && measure !== 'path' && <sup>R</sup>} {cellText(reach, measure)}
      </>
    ) : (
      '–'
    )}
  </div>
);

interface RowProps {
  readonly from: string;
  readonly index: number;
  readonly names: readonly string[];
  /** Indexes of those in sight. */
  readonly columns: readonly number[];
  readonly reach: Readonly<Record<string, ReachView>> | undefined;
  readonly measure: Measure;
  readonly activeColumn: number;
  readonly top: number;
  readonly headWidth: number;
}

/** Drawn anew only when something of its own changed. */
export const MatrixRow = memo(function MatrixRow(props: RowProps) {
  const { from, index, names, columns, reach, measure, activeColumn, top, headWidth } = props;
  return (
    <div role="row" aria-rowindex={index + 2} className="matrix-row" style={{ top, height: CELL_PX }}>
      <div role="rowheader" aria-colindex={1} className="row-head" style={{ width: headWidth }} title={from}>
        {from}
      </div>
      {columns.map((column) => {
        const to = names[column]!;
        return (
          <Cell
            key={to}
            at={[index, column]}
            left={headWidth + column * cellWidth(measure)}
            reach={reach?.[to]}
            isActive={column === activeColumn}
            {...{ from, to, measure }}
          />
        );
      })}
    </div>
  );
});
