import { alertSelectors } from '@unbounded/monitoring/alert-selectors';
import { panelQueries } from '@unbounded/monitoring/panel-queries';
import { targetsOf } from '../../features/prometheus/targets.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { checkMetrics, queryMetrics } from './prometheus.ts';

/** What of the dashboards and alerts finds nothing in a lab's Prometheus, and what promtool says of its programs. */

export type Wanted = (expression: string) => boolean;

/** @param node that dashboards of one node show */
export const emptyPanels = async (layout: LabLayout, node: string, isWanted: Wanted): Promise<string[]> => {
  const found: string[] = [];
  for (const { dashboard, panel, expr } of panelQueries({ rateInterval: '30s', values: { node } }))
    if (isWanted(expr) && (await queryMetrics(layout, expr)).length === 0)
      found.push(`${dashboard}: ${panel}: ${expr}`);
  return found;
};

export const emptyRules = async (layout: LabLayout, isWanted: Wanted): Promise<string[]> => {
  const found: string[] = [];
  for (const { alert, selector } of alertSelectors())
    if (isWanted(selector) && (await queryMetrics(layout, `last_over_time(${selector}[30m])`)).length === 0)
      found.push(`${alert}: ${selector}`);
  return found;
};

/** By program, what `promtool check metrics` says of each that runs. */
export const promtoolFindings = async (layout: LabLayout): Promise<Map<string, string>> => {
  const findings = new Map<string, string>();
  for (const { job, address } of targetsOf(layout))
    findings.set(job, `${findings.get(job) ?? ''}${await checkMetrics(layout, address)}`);
  return findings;
};
