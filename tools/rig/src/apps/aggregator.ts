import { join } from 'node:path';
import { apiServerUrl, type LabLayout, namespaceOf } from '../layout/layout.ts';
import { applyManifests } from '../kubernetes/control-plane.ts';
import { inNamespace } from '../machine/command.ts';
import { pidOf, startDaemon } from '../machine/daemon.ts';
import { appBundle, controlPlaneDir, nodeJs } from '../machine/paths.ts';
import { writeTokenKubeconfig } from './token-kubeconfig.ts';
import { AGGREGATOR, controllerTokenFile, NAMESPACE } from './tokens.ts';

/** The status aggregator as a process on the node of the control plane; nodes of other sites reach it by the overlay, as they would a pod. */

const PORT = 9443;
const HEALTH_PORT = 9121;
const TOKEN_DEADLINE_MS = 30_000;

/** What a Service with a selector has by itself. */
const serviceObjects = ({ controlPlane: { internalIp } }: LabLayout): readonly object[] => {
  const metadata = { name: AGGREGATOR, namespace: NAMESPACE };
  const ports = [{ name: 'https', port: 443, targetPort: PORT }];
  const isIpv6 = internalIp.includes(':');
  return [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata },
      spec: { ports, ipFamilyPolicy: 'SingleStack', ipFamilies: [isIpv6 ? 'IPv6' : 'IPv4'] },
    },
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: isIpv6 ? 'IPv6' : 'IPv4' },
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': AGGREGATOR } },
      endpoints: [{ addresses: [internalIp], conditions: { ready: true } }],
      ports: [{ name: 'https', port: PORT, protocol: 'TCP' }],
    },
  ];
};

export const startAggregator = async (layout: LabLayout): Promise<void> => {
  if (pidOf(AGGREGATOR) !== undefined) return;
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
  startDaemon(AGGREGATOR, [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    ...[nodeJs, appBundle(AGGREGATOR), '--kubeconfig', kubeconfig],
    ...['--port', String(PORT), '--health-port', String(HEALTH_PORT)],
  ]);
};
