import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { accessRules, namespaceFile, yamlOf } from '@unbounded/testing/chart';
import { images } from './images.ts';
import { hostOf, PLANS } from '../../layout/addresses.ts';
import {
  hasRelay,
  isRouted,
  type LabLayout,
  type LabSite,
  relayEndpoint,
  servicesOf,
  worldIps,
} from '../../layout/layout.ts';
import { hasInternalPools } from '../../layout/options.ts';
import { checkout } from '../../machine/paths.ts';

/** The Kubernetes objects that the lab applies. */

const GROUP = 'net.unbounded-cloud.io';
const kindOf = (kind: string, name: string, spec: object): object => ({
  apiVersion: `${GROUP}/v1alpha1`,
  kind,
  metadata: { name },
  spec,
});

const filesOf = (folder: string): string =>
  readdirSync(join(checkout, folder))
    .filter((file) => file.endsWith('.yaml'))
    .sort()
    .map((file) => readFileSync(join(checkout, folder, file), 'utf8'))
    .join('\n---\n');

export const crds = (): string => filesOf('deploy/crds');
/** What our apps may do, for those that run as processes; as pods they bring it along. */
export const rbac = (): string => [readFileSync(namespaceFile, 'utf8'), yamlOf(accessRules())].join('\n---\n');

const siteObject = (site: LabSite, layout: LabLayout): object =>
  kindOf('Site', site.name, {
    nodeCidrs: site.lans,
    podCidrAssignments: [
      {
        cidrBlocks: site.podPools,
        nodeBlockSizes: Object.fromEntries(
          layout.families.map((family) => [`ipv${family}`, PLANS[family].nodeBlock] as const),
        ),
      },
    ],
    tunnelProtocol: layout.options.protocol,
  });

export const poolName = (site: string): string => `${site}-gateways`;

const between = ({ options }: LabLayout): object =>
  options.between === 'Auto' ? {} : { tunnelProtocol: options.between };

/** Which pools are peered: all with all, or in a chain each with the next. */
const poolPeerings = (layout: LabLayout): object[] => {
  const names = layout.sites.map(({ name }) => poolName(name));
  if (names.length < 2) return [];
  const peering = (name: string, gatewayPools: readonly (string | undefined)[]): object =>
    kindOf('GatewayPoolPeering', name, { gatewayPools, ...between(layout) });
  if (layout.options.topology !== 'chain') return [peering('all', names)];
  return names.slice(1).map((name, index) => peering(`chain-${index + 1}`, [names[index], name]));
};

/** The sites, their gateway pools, and what joins them. */
export const siteObjects = (layout: LabLayout): object[] => {
  const { gateways, topology } = layout.options;
  const pools = gateways > 0 && topology !== 'mesh' ? layout.sites : [];
  const type = hasInternalPools(topology) ? 'Internal' : 'External';
  const sites = layout.sites.map(({ name }) => name);
  return [
    ...layout.sites.map((site) => siteObject(site, layout)),
    ...pools.map(({ name }) =>
      kindOf('GatewayPool', poolName(name), {
        type,
        nodeSelector: { 'node-restriction.kubernetes.io/gateway-of': name },
      }),
    ),
    ...pools.map(({ name }) =>
      kindOf('SiteGatewayPoolAssignment', name, { sites: [name], gatewayPools: [poolName(name)] }),
    ),
    ...(pools.length > 0 ? poolPeerings(layout) : []),
    ...(hasRelay(layout)
      ? [kindOf('Mesh', 'default', { relay: { provider: 'external', external: { endpoint: relayEndpoint(layout) } } })]
      : []),
    ...(isRouted(layout) && sites.length > 1
      ? [kindOf('SitePeering', 'routed', { sites, meshNodes: topology === 'mesh', ...between(layout) })]
      : []),
  ];
};

const everywhere = [{ operator: 'Exists' }];

const probeDaemonSet = (name: string): object => ({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name, labels: { app: 'probe' } },
  spec: {
    selector: { matchLabels: { probe: name } },
    template: {
      metadata: { labels: { app: 'probe', probe: name } },
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

export const PROBES = ['probe-a', 'probe-b'] as const;
export const NODE_PORT = 30080;

/** Two pods on every node, and a Service over all of them. */
export const probes = (): string =>
  yamlOf([
    ...PROBES.map(probeDaemonSet),
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

/** Asks the host of the outside world by which address it sees us; one URL for each family. */
export const worldUrls = (layout: LabLayout): string[] =>
  worldIps(layout).map((ip) => `http://${hostOf(ip)}:8080/client`);
