/** An alert of Prometheus, as the files in alerts/ define it. */
export interface Alert {
  /** Also the heading of its section in docs/troubleshooting.md. */
  readonly name: `Unbounded${string}`;
  readonly expr: string;
  /** How long the state has to last: longer than a rolling update of the programs makes it last. */
  readonly for: string;
  /** critical: traffic is lost, or will be with the next fault. warning: look at it today. info: know about it. */
  readonly severity: 'critical' | 'warning' | 'info';
  /** One sentence, with labels of the result as Prometheus' templates write them. */
  readonly summary: string;
  readonly description: string;
}

export interface AlertGroup {
  readonly name: string;
  readonly alerts: readonly Alert[];
}

/** The anchor that renderers of Markdown make of a heading with the alert's name. */
export const anchorOf = ({ name }: Alert): string => name.toLowerCase();
