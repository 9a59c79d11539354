import { panelsOf } from './dashboard.ts';
import { DASHBOARDS } from './dashboards.ts';

/** What panels ask Prometheus, as Grafana sends it. */
export interface PanelQuery {
  readonly dashboard: string;
  readonly panel: string;
  readonly expr: string;
}

export interface QueryOptions {
  /** At least four intervals of scraping, as Grafana chooses it. */
  readonly rateInterval: string;
  /** Of variables by their names; one that allows several values is "All" without an entry. */
  readonly values: Readonly<Record<string, string>>;
}

/** @throws Error that names a variable without a value */
export const panelQueries = ({ rateInterval, values }: QueryOptions): PanelQuery[] =>
  DASHBOARDS.flatMap((board) => {
    const { uid, variables } = board;
    const known: Record<string, string> = { __rate_interval: rateInterval };
    for (const { name, isMultiple } of variables) {
      const value = values[name] ?? (isMultiple ? '.*' : undefined);
      if (value === undefined) throw new Error(`${uid}: the variable ${name} must have a value`);
      known[name] = value;
    }
    const filled = (expr: string): string => expr.replaceAll(/\$(\w+)/g, (_, name: string) => known[name]!);
    return panelsOf(board).flatMap(({ title, queries }) =>
      queries.map(({ expr }) => ({ dashboard: uid, panel: title, expr: filled(expr) })),
    );
  });
