import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostOf } from '../../layout/addresses.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';
import { inNamespace } from '../../machine/command.ts';
import { pidOf, startDaemon } from '../../machine/daemon.ts';
import { checkout, state } from '../../machine/paths.ts';
import { type Feature, NOTHING } from '../feature.ts';
import { configurationOf } from './configuration.ts';

/** Debian's Prometheus on the node of the control plane, with the alerts of our chart. */

export const PROMETHEUS = 'prometheus';
const PORT = 9090;
const RETENTION = '1d';

export const hasPrometheus = ({ options }: LabLayout): boolean => options.prometheus;
/** Where the node of the control plane has it. */
export const prometheusEndpoint = ({ controlPlane }: LabLayout): string => `${hostOf(controlPlane.internalIp)}:${PORT}`;

/** A copy of the chart's alerts: it reads what stands here when it is told to (SIGHUP). */
export const rulesFile = join(state, PROMETHEUS, 'alerts.yaml');
const CHART_RULES = join(checkout, 'deploy/chart/charts/monitoring/files/alerts.yaml');

const start = (layout: LabLayout): void => {
  if (!hasPrometheus(layout) || pidOf(PROMETHEUS) !== undefined) return;
  const folder = join(state, PROMETHEUS);
  mkdirSync(folder, { recursive: true });
  copyFileSync(CHART_RULES, rulesFile);
  const file = join(folder, 'prometheus.json');
  writeFileSync(file, configurationOf(layout, rulesFile));
  startDaemon(PROMETHEUS, [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    ...['prometheus', `--config.file=${file}`, `--web.listen-address=${prometheusEndpoint(layout)}`],
    ...[`--storage.tsdb.path=${join(folder, 'data')}`, `--storage.tsdb.retention.time=${RETENTION}`],
  ]);
};

export const prometheus: Feature = {
  ...NOTHING,
  start,
  daemons: (layout) => (hasPrometheus(layout) ? [PROMETHEUS] : []),
};
