/** Whether a Prometheus reads the metrics of all programs. */

export interface PrometheusOptions {
  /** A Prometheus on the node of the control plane, with the chart's alerts. */
  readonly prometheus: boolean;
}

/** @throws Error for programs in pods */
const check = ({ prometheus, agents }: PrometheusOptions & { readonly agents: string }): void => {
  if (prometheus && agents === 'pods')
    throw new Error('--prometheus: Debian’s Prometheus finds no pods by itself; --agents must be process');
};

const defaults: PrometheusOptions = { prometheus: false };

export const prometheusOptions = { defaults, choices: {}, check } as const;
