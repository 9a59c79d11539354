import { shapeOf } from './badges.tsx';

/** What the shapes in a matrix mean. */
export const MatrixLegend = ({ states, none }: { readonly states: readonly string[]; readonly none: string }) => (
  <p className="muted">
    {states.map((state) => (
      <span key={state} className="legend">
        <span aria-hidden="true">{shapeOf(state)}</span> {state}
      </span>
    ))}
    <span className="legend">
      <span aria-hidden="true">–</span> {none}
    </span>
    <span className="legend">
      <sup>R</sup> relayed, some or all
    </span>
  </p>
);
