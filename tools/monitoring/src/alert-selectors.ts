import { ALERTS } from './alerts.ts';
import { parsePromql, selectorsOf } from './promql-tree.ts';

/** What the alerts read, without the comparison that makes each of them fire. */
export interface AlertSelector {
  readonly alert: string;
  /** An instant or range selector as it stands in the expression, without its range. */
  readonly selector: string;
}

export const alertSelectors = (): AlertSelector[] =>
  ALERTS.flatMap(({ name, expr }) => {
    const expression = parsePromql(expr);
    return [...new Set(selectorsOf(expression).map(expression.textOf))].map((selector) => ({ alert: name, selector }));
  });
