import { join } from 'node:path';
import { hasRedis, redisUrl } from './redis-place.ts';
import { apiServerUrl, type LabLayout, namespaceOf } from '../layout/layout.ts';
import { applyManifests } from '../kubernetes/control-plane.ts';
import { inNamespace } from '../machine/command.ts';
import { pidOf, startDaemon, stopDaemon } from '../machine/daemon.ts';
import { appBundle, controlPlaneDir, nodeJs } from '../machine/paths.ts';
import { writeTokenKubeconfig } from './token-kubeconfig.ts';
import { AGGREGATOR, controllerTokenFile, NAMESPACE } from './tokens.ts';

/**
 * The status aggregator as processes on the node of the control plane; nodes of other sites reach it by the overlay, as they would a pod. There
 * are two where they can share what they hold.
 */

const FIRST_PORT = 9443;
const FIRST_HEALTH_PORT = 9121;
const TOKEN_DEADLINE_MS = 30_000;

interface Replica {
  readonly name: string;
  readonly port: number;
  readonly healthPort: number;
}

const replicasOf = (layout: LabLayout): Replica[] =>
  Array.from({ length: hasRedis(layout) ? 2 : 1 }, (_, at) => ({
    name: at === 0 ? AGGREGATOR : `${AGGREGATOR}-${at + 1}`,
    ...{ port: FIRST_PORT + at, healthPort: FIRST_HEALTH_PORT + at },
  }));

/** Where the replicas have their metrics: TCP, at every address of the node of the control plane. */
export const aggregatorMetrics = (layout: LabLayout): { readonly name: string; readonly port: number }[] =>
  replicasOf(layout).map(({ name, healthPort: port }) => ({ name, port }));

/** Log and process names of the replicas. */
export const aggregatorDaemons = (layout: LabLayout): string[] => replicasOf(layout).map(({ name }) => name);

/** What a Service with a selector has by itself: a slice for each port. */
const serviceObjects = (layout: LabLayout): readonly object[] => {
  const { internalIp } = layout.controlPlane;
  const isIpv6 = internalIp.includes(':');
  const slices = replicasOf(layout).map(({ name, port }) => ({
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: isIpv6 ? 'IPv6' : 'IPv4' },
    metadata: { name, namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': AGGREGATOR } },
    endpoints: [{ addresses: [internalIp], conditions: { ready: true } }],
    ports: [{ name: 'https', port, protocol: 'TCP' }],
  }));
  const service = {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: AGGREGATOR, namespace: NAMESPACE } },
    spec: {
      ports: [{ name: 'https', port: 443, targetPort: FIRST_PORT }],
      ...{ ipFamilyPolicy: 'SingleStack', ipFamilies: [isIpv6 ? 'IPv6' : 'IPv4'] },
    },
  };
  return [service, ...slices];
};

const startReplica = (layout: LabLayout, kubeconfig: string, { name, port, healthPort }: Replica): void => {
  if (pidOf(name) !== undefined) return;
  startDaemon(name, [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    ...[nodeJs, appBundle(AGGREGATOR), '--kubeconfig', kubeconfig],
    ...['--port', String(port), '--health-port', String(healthPort)],
    ...(hasRedis(layout) ? ['--redis-url', redisUrl(layout)] : []),
  ]);
};

/** Starts those that do not run. */
export const startAggregator = async (layout: LabLayout): Promise<void> => {
  const kubeconfig = join(controlPlaneDir, `${AGGREGATOR}.kubeconfig`);
  await writeTokenKubeconfig(kubeconfig, {
    server: apiServerUrl(layout, layout.controlPlane.site),
    tokenFile: controllerTokenFile(AGGREGATOR),
    deadlineMs: TOKEN_DEADLINE_MS,
  });
  await applyManifests(
    layout,
    serviceObjects(layout)
      .map((object) => JSON.stringify(object))
      .join('\n---\n'),
  );
  for (const replica of replicasOf(layout)) startReplica(layout, kubeconfig, replica);
};

export const stopAggregator = async (layout: LabLayout): Promise<void> => {
  for (const { name } of replicasOf(layout)) await stopDaemon(name);
};
