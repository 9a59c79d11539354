import { alertRules, alertTable } from './alerts.ts';
import { dashboardJson } from './dashboard-json.ts';
import { DASHBOARDS, dashboardTable } from './dashboards.ts';

/** What tools/generate writes: by path in the chart's folder of files. */
export const monitoringFiles = (): ReadonlyMap<string, string> =>
  new Map([
    ['alerts.yaml', alertRules()],
    ...DASHBOARDS.map((board) => [`dashboards/${board.uid}.json`, dashboardJson(board)] as const),
  ]);

/** The generated part of docs/monitoring.md. */
export const monitoringTables = (): string => `## Dashboards\n\n${dashboardTable()}\n\n## Alerts\n\n${alertTable()}`;
