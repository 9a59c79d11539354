/** A dashboard of Grafana, as the files in dashboards/ define it: what it shows, not how the JSON says so. */

interface Query {
  readonly expr: string;
  /** With `{{label}}` for labels of the result. */
  readonly legend: string;
}

export interface Panel {
  /** stat: one number, now. lines: over time. areas: the same, one upon the other. */
  readonly kind: 'stat' | 'lines' | 'areas';
  readonly title: string;
  /** What it means, and what to do. */
  readonly description: string;
  /** Of Grafana's units: short, percentunit, pps, Bps, s, … */
  readonly unit: string;
  readonly queries: readonly Query[];
  /** From this value on a number is shown in red; `below`: up to it. */
  readonly bad?: { readonly from: number } | { readonly below: number };
}

interface Row {
  /** A question, which its panels answer. */
  readonly title: string;
  readonly panels: readonly Panel[];
}

export interface Variable {
  readonly name: string;
  readonly label: string;
  /** Its values are those of the label, at the series. */
  readonly series: string;
  readonly valuesOf: string;
  /** False: one value at a time. */
  readonly isMultiple: boolean;
}

export interface Dashboard {
  /** Stable, since links to dashboards have it. */
  readonly uid: `unbounded-${string}`;
  readonly title: string;
  /** The question that it answers. */
  readonly description: string;
  readonly variables: readonly Variable[];
  readonly rows: readonly Row[];
}

/** Of all rows, in their order. */
export const panelsOf = ({ rows }: Pick<Dashboard, 'rows'>): Panel[] => rows.flatMap(({ panels }) => panels);

type Told = Omit<Panel, 'kind' | 'queries'>;

export const stat = (told: Told, expr: string): Panel => ({
  ...told,
  kind: 'stat',
  queries: [{ expr, legend: told.title }],
});

const over = (kind: 'lines' | 'areas') => {
  return (told: Told, ...queries: readonly (readonly [expr: string, legend: string])[]): Panel => ({
    ...told,
    kind,
    queries: queries.map(([expr, legend]) => ({ expr, legend })),
  });
};
export const lines = over('lines');
export const areas = over('areas');

/** Lines of quantiles of a histogram. */
export const quantiles = (told: Told, histogram: string, selector = ''): Panel =>
  lines(
    told,
    ...[0.5, 0.9, 0.99].map(
      (quantile) =>
        [
          `histogram_quantile(${quantile}, sum by (le) (rate(${histogram}_bucket${selector}[$__rate_interval])))`,
          `${quantile * 100} %`,
        ] as const,
    ),
  );
