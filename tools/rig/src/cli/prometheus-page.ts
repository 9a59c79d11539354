import { once } from 'node:events';
import { hasPrometheus, prometheusEndpoint } from '../features/prometheus/prometheus.ts';
import type { LabLayout } from '../layout/layout.ts';
import { UsageError } from '../layout/usage-error.ts';
import { openPassage, serveOnLoopback } from '../status/passage.ts';

/** The page of the lab's Prometheus on this machine's loopback, for a browser. */

const PORT = 9090;

/** Serves until it is interrupted. @throws UsageError without a Prometheus; Error when the port is taken */
export const servePrometheus = async (layout: LabLayout): Promise<void> => {
  if (!hasPrometheus(layout))
    throw new UsageError('this lab has no Prometheus; tools/lab down, then up with --prometheus');
  const { socket } = await openPassage(layout, 'prometheus', prometheusEndpoint(layout));
  await serveOnLoopback(socket, PORT);
  console.log(`http://localhost:${PORT}/targets   what it reads
http://localhost:${PORT}/alerts    the chart's alerts (docs/troubleshooting.md)
http://localhost:${PORT}/graph     any query; a Grafana takes http://localhost:${PORT} as its data source

Ctrl+C ends it.`);
  await once(process, 'SIGINT');
  process.exit();
};
