import { type KeyboardEvent, type SyntheticEvent, useEffect, useRef } from 'react';
import { type Measure, moveInGrid } from '../view/matrix.ts';
import { CELL_PX, type CellKind, cellWidth, MatrixRow } from './matrix-row.tsx';
import { useMatrixWindow } from './matrix-window.ts';

type Place = readonly [row: number, column: number];

interface MatrixGridProps<Value> {
  readonly label: string;
  /** Names of rows and of columns. */
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly values: Readonly<Record<string, Readonly<Record<string, Value>>>>;
  readonly kind: CellKind<Value>;
  readonly measure: Measure;
  readonly active: Place;
  readonly onActive: (place: Place) => void;
  /** By Enter, and by a double click. */
  readonly onOpen?: (place: Place) => void;
  readonly onPoint: (place: Place | undefined) => void;
}

const headSize = (): Place => [globalThis.innerWidth < 600 ? 96 : 150, 110];

const placeOf = ({ target }: SyntheticEvent): Place | undefined => {
  const cell = target instanceof Element ? target.closest<HTMLElement>('[role=gridcell]') : undefined;
  return cell ? [Number(cell.dataset['row']), Number(cell.dataset['column'])] : undefined;
};

const Head = ({
  names,
  columns,
  width,
  head,
}: {
  readonly names: readonly string[];
  readonly columns: readonly number[];
  readonly width: number;
  readonly head: Place;
}) => (
  <div role="row" aria-rowindex={1} className="matrix-head" style={{ height: head[1] }}>
    <div role="columnheader" aria-colindex={1} className="corner" style={{ width: head[0], height: head[1] }}>
      from ↓ to →
    </div>
    {columns.map((index) => (
      <div
        key={names[index]}
        role="columnheader"
        aria-colindex={index + 2}
        className="column-head"
        style={{ left: head[0] + index * width, width }}
        title={names[index]}
      >
        <span>{names[index]}</span>
      </div>
    ))}
  </div>
);

/** The grid pattern of ARIA: one cell can be reached by Tab, arrows lead to the others. Only what is in sight is in the document. */
export const MatrixGrid = <Value,>(props: MatrixGridProps<Value>) => {
  const { label, from, to, values, kind, measure, active, onActive, onOpen, onPoint } = props;
  const region = useRef<HTMLDivElement>(null);
  const isFocusWanted = useRef(false);
  const head = headSize();
  const width = cellWidth(measure);
  const size = { rows: from.length, columns: to.length };
  const shown = useMatrixWindow({ region: () => region.current, size, active, width, head });
  useEffect(() => {
    if (!isFocusWanted.current) return;
    const cell = region.current?.querySelector<HTMLElement>(`[data-row="${active[0]}"][data-column="${active[1]}"]`);
    if (!cell) return; // it comes with the next drawing
    isFocusWanted.current = false;
    cell.focus({ preventScroll: true });
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') onOpen?.(active);
    const page = Math.max(1, Math.floor((region.current!.clientHeight - head[1]) / CELL_PX) - 1);
    const next = moveInGrid(event.key, event.ctrlKey || event.metaKey, active, { ...size, page });
    if (!next) return;
    event.preventDefault();
    isFocusWanted.current = true;
    onActive(next);
    shown.scrollTo(next);
  };
  const take = (event: SyntheticEvent): void => {
    const place = placeOf(event);
    if (place && (place[0] !== active[0] || place[1] !== active[1])) onActive(place);
  };
  return (
    <div
      {...{ ref: region, className: 'matrix', role: 'grid', onKeyDown, onFocus: take }}
      aria-label={label}
      aria-rowcount={size.rows + 1}
      aria-colcount={size.columns + 1}
      onDoubleClick={(event) => {
        const place = placeOf(event);
        if (place) onOpen?.(place);
      }}
      onPointerOver={(event) => onPoint(placeOf(event))}
      onPointerLeave={() => onPoint(undefined)}
    >
      <div
        role="presentation"
        style={{ position: 'relative', width: head[0] + size.columns * width, height: head[1] + size.rows * CELL_PX }}
      >
        <Head names={to} columns={shown.columns} {...{ width, head }} />
        {shown.rows.map((index) => (
          <MatrixRow
            key={from[index]}
            from={from[index]!}
            top={head[1] + index * CELL_PX}
            columns={shown.columns}
            values={values[from[index]!]}
            activeColumn={active[0] === index ? active[1] : -1}
            headWidth={head[0]}
            {...{ index, to, kind, measure }}
          />
        ))}
      </div>
    </div>
  );
};
