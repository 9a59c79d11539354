import type { LabLayout } from '../../layout/layout.ts';
import { targetsOf } from './targets.ts';

/** What Prometheus is to read, and by which rules. */

const INTERVAL = '5s';

/**
 * As JSON, which is YAML.
 * @param rules file of the alerts
 */
export const configurationOf = (layout: LabLayout, rules: string): string => {
  const byJob = Map.groupBy(targetsOf(layout), ({ job }) => job);
  return JSON.stringify({
    global: { scrape_interval: INTERVAL, evaluation_interval: INTERVAL },
    rule_files: [rules],
    scrape_configs: [...byJob].map(([job, targets]) => ({
      job_name: job,
      static_configs: targets.map(({ address, labels }) => ({ targets: [address], labels })),
    })),
  });
};
