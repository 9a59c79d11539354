import { memo, type ReactNode } from 'react';
import type { Measure } from '../view/matrix.ts';
import { shapeOf, toneOf } from './badges.tsx';

/** Sizes in px, which the grid's place for each cell is computed from. */
export const CELL_PX = 28;
export const cellWidth = (measure: Measure): number => (measure === 'state' ? CELL_PX : 68);

/** What is drawn of a cell. */
interface CellLook {
  readonly state: string;
  readonly isRelayed: boolean;
  /** Beside the shape; short. */
  readonly text: string;
}

/** What cells of a matrix are: of sites, or of nodes. Made once, outside of components. */
export interface CellKind<Value> {
  readonly look: (value: Value, measure: Measure) => CellLook;
  /** For who cannot see it. */
  readonly label: (from: string, to: string, value: Value | undefined) => string;
}

interface CellProps<Value> {
  readonly from: string;
  readonly to: string;
  readonly value: Value | undefined;
  readonly kind: CellKind<Value>;
  readonly measure: Measure;
  readonly at: readonly [row: number, column: number];
  readonly left: number;
  readonly isActive: boolean;
}

/** What stands in the cell is in its name too: who speaks to the machine says what is seen (WCAG 2.5.3). */
const nameOf = (label: string, shown: readonly string[]): string => {
  const seen = shown.filter((text) => text !== '').join(' ');
  return seen === '' ? label : `${label}; ${seen}`;
};

const Cell = <Value,>({ from, to, value, kind, measure, at: [row, column], left, isActive }: CellProps<Value>) => {
  const look = value === undefined ? undefined : kind.look(value, measure);
  const mark = look?.isRelayed && measure !== 'path' ? 'R' : '';
  return (
    <div
      role="gridcell"
      tabIndex={isActive ? 0 : -1}
      data-row={row}
      data-column={column}
      aria-colindex={column + 2}
      aria-selected={isActive}
      aria-label={nameOf(kind.label(from, to, value), [mark, look?.text ?? ''])}
      className={`cell ${look ? toneOf(look.state) : 'none'} ${from === to ? 'own' : ''}`}
      style={{ left, width: cellWidth(measure) - 2 }}
    >
      {look ? (
        <>
          {shapeOf(look.state)}
          {mark !== '' && <sup>{mark}</sup>} {look.text}
        </>
      ) : (
        '–'
      )}
    </div>
  );
};

interface RowProps<Value> {
  readonly from: string;
  readonly index: number;
  /** Names of all columns. */
  readonly to: readonly string[];
  /** Indexes of those in sight. */
  readonly columns: readonly number[];
  readonly values: Readonly<Record<string, Value>> | undefined;
  readonly kind: CellKind<Value>;
  readonly measure: Measure;
  readonly activeColumn: number;
  readonly top: number;
  readonly headWidth: number;
}

/** Drawn anew only when something of its own changed. */
export const MatrixRow = memo(function MatrixRow(props: RowProps<unknown>) {
  const { from, index, to: names, columns, values, kind, measure, activeColumn, top, headWidth } = props;
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
            value={values && Object.hasOwn(values, to) ? values[to] : undefined}
            isActive={column === activeColumn}
            {...{ from, to, kind, measure }}
          />
        );
      })}
    </div>
  );
}) as <Value>(props: RowProps<Value>) => ReactNode;
