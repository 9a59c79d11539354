import { binary, state } from '../../machine/paths.ts';
import { join } from 'node:path';
import { yamlOf } from '@unbounded/testing/chart';
import { inNamespace } from '../../machine/command.ts';
import { startDaemon, stopDaemon } from '../../machine/daemon.ts';
import { applyManifests, kubeconfigFile, kubectl } from '../../kubernetes/control-plane.ts';
import { type LabLayout, namespaceOf } from '../../layout/layout.ts';

/** Kubernetes' metrics-server on the node of the control plane: it tells horizontal autoscalers what pods use. */

const NAME = 'metrics-server';
const PORT = 4443;
const WHERE = { name: NAME, namespace: 'kube-system' };
/** The shortest that it takes; a request has to be over before the next one. */
const RESOLUTION = '10s';
const REQUEST_TIMEOUT = '5s';

const objects = ({ controlPlane }: LabLayout): readonly object[] => [
  {
    ...{ apiVersion: 'v1', kind: 'Service', metadata: WHERE },
    spec: { ports: [{ name: 'https', port: 443, targetPort: PORT }] },
  },
  {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: { ...WHERE, labels: { 'kubernetes.io/service-name': NAME } },
    endpoints: [{ addresses: [controlPlane.internalIp], conditions: { ready: true } }],
    ports: [{ name: 'https', port: PORT, protocol: 'TCP' }],
  },
  {
    ...{ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name: 'v1beta1.metrics.k8s.io' } },
    spec: {
      ...{ group: 'metrics.k8s.io', version: 'v1beta1', groupPriorityMinimum: 100, versionPriority: 100 },
      ...{ service: WHERE, insecureSkipTLSVerify: true },
    },
  },
];

/** Starts it, and resolves when the API server serves what it says of pods. */
export const startMetricsServer = async (layout: LabLayout): Promise<void> => {
  const config = kubeconfigFile('admin');
  startDaemon(NAME, [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    ...[binary(NAME), `--kubeconfig=${config}`, `--authentication-kubeconfig=${config}`],
    ...[`--authorization-kubeconfig=${config}`, `--secure-port=${PORT}`, `--metric-resolution=${RESOLUTION}`],
    ...['--kubelet-preferred-address-types=InternalIP', '--kubelet-insecure-tls'],
    `--kubelet-request-timeout=${REQUEST_TIMEOUT}`,
    `--cert-dir=${join(state, NAME)}`,
  ]);
  await applyManifests(layout, yamlOf(objects(layout)));
  await kubectl(layout, ['wait', '--for=condition=Available', 'apiservice/v1beta1.metrics.k8s.io', '--timeout=90s']);
};

export const stopMetricsServer = (): Promise<void> => stopDaemon(NAME);
