import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessRules, namespaceFile, yamlOf } from '@unbounded/testing/chart';
import { lanAnnotations } from '../../features/lan/lan.ts';
import { tailnetPodAnnotations } from '../../features/tailnet/tailnet.ts';
import { valuesOfApps } from '../../apps/chart.ts';
import { images } from './images.ts';
import { type LabLayout, servicesOf } from '../../layout/layout.ts';
import { checkout } from '../../machine/paths.ts';
import { PROBES } from '../../checks/test-pod.ts';

/** The Kubernetes objects that the lab applies. */

const filesOf = (folder: string): string =>
  readdirSync(join(checkout, folder))
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => readFileSync(join(checkout, folder, file), 'utf8'))
    .join('\n---\n');

export const crds = (): string => filesOf('deploy/crds');

/** What our apps may do, for those that run as processes; as pods they bring it along. */
export const rbac = (layout: LabLayout): string =>
  [readFileSync(namespaceFile, 'utf8'), yamlOf(accessRules(valuesOfApps(layout)))].join('\n---\n');

const everywhere = [{ operator: 'Exists' }];

const probeDaemonSet = (name: string, annotations: object): object => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name, labels: { app: 'probe' } },
  spec: {
    selector: { matchLabels: { probe: name } },
    template: {
      metadata: { labels: { app: 'probe', probe: name }, annotations },
      spec: {
        tolerations: everywhere,
        terminationGracePeriodSeconds: 0,
        containers: [
          {
            name: 'probe',
            image: images['probe']!.reference,
            args: ['serve'],
            imagePullPolicy: 'Never',
            securityContext: { capabilities: { add: ['NET_ADMIN'] } }, // for the size of its socket buffers
            readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
          },
        ],
      },
    },
  },
});

export const NODE_PORT = 30080;

/** Two pods on every node, and a Service over all of them. */
export const probes = (layout: LabLayout): string =>
  yamlOf([
    ...PROBES.map((name) => probeDaemonSet(name, { ...lanAnnotations(layout), ...tailnetPodAnnotations(layout) })),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'probe' },
      spec: {
        type: 'NodePort',
        ipFamilyPolicy: 'PreferDualStack',
        selector: { app: 'probe' },
        ports: [{ port: 80, targetPort: 8080, nodePort: NODE_PORT }],
      },
    },
  ]);

const corefile = `.:53 {
    errors
    health
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
        ttl 30
    }
    cache 30
    reload
}
`;

/** The cluster's DNS, on the control-plane node, where its image is. */
export const dns = (layout: LabLayout): string => {
  const metadata = { name: 'coredns', namespace: 'kube-system' };
  const labels = { 'k8s-app': 'kube-dns' };
  return yamlOf([
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'system:coredns' },
      rules: [
        { apiGroups: [''], resources: ['services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'system:coredns' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:coredns' },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: corefile } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { ...metadata, labels },
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: 'coredns',
            dnsPolicy: 'Default',
            tolerations: everywhere,
            nodeSelector: { 'kubernetes.io/hostname': layout.controlPlane.name },
            containers: [
              {
                name: 'coredns',
                image: images['coredns']!.reference,
                imagePullPolicy: 'Never',
                args: ['-conf', '/etc/coredns/Corefile'],
                ports: [
                  { containerPort: 53, protocol: 'UDP', name: 'dns' },
                  { containerPort: 53, protocol: 'TCP', name: 'dns-tcp' },
                ],
                readinessProbe: { httpGet: { path: '/ready', port: 8181 }, periodSeconds: 1 },
                volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
              },
            ],
            volumes: [{ name: 'config', configMap: { name: 'coredns' } }],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: 'kube-system', labels },
      spec: {
        clusterIP: servicesOf(layout)[0]!.dns,
        selector: labels,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
        ],
      },
    },
  ]);
};
