import { RELAY_SERVICE } from '@unbounded/config/ownership';
import type { Deployment } from '@unbounded/kube';
import { GATEWAY_TAINT, GROUP_VERSION, type Mesh, MESH_NAME, type RelaySpec } from '@unbounded/crds';

import { KEYS_CONFIG_MAP, KEYS_FILE } from './relay-keys.plan.ts';
import { affinityOf, nodesToName, type Placement } from './relay-placement.plan.ts';

/** The relay that a Mesh asks us to run, as objects. It is what the chart's relay subchart runs. */

/** Value of the label by which our objects are told from those of people and of the chart. */
const MANAGER = 'gateway-health';
const MANAGED_BY = 'app.kubernetes.io/managed-by';
/** Label of nodes. */
const HOSTNAME = 'kubernetes.io/hostname';
const NAME = RELAY_SERVICE;
const HEADLESS = `${NAME}-headless`;
export const LINKS_SECRET = `${NAME}-links`;
/** Made by people, or by cert-manager. */
const TLS_SECRET = `${NAME}-tls`;
const STATIC_KEY_SECRET = `${NAME}-static-key`;
/** What one client may send: 1 Gbit/s. */
const MOST_BYTES_PER_SECOND = 125_000_000;

/** In the pod: none of them needs a privilege. */
const PORTS = { relay: 3478, links: 3479, health: 9994 } as const;
/** Clients have left within the first, and a pod has ended within the last; until the first no new ones come to it. */
const SECONDS = { unlisted: 3, drain: 10, grace: 60 } as const;

export interface RelayImage {
  readonly image: string;
  readonly pullPolicy: string;
  readonly pullSecrets: readonly string[];
}

/** The relay that is ours to run; undefined: none is. */
export const managedRelay = (mesh: Mesh | undefined): RelaySpec['managed'] => {
  const relay = mesh?.spec.relay;
  return relay?.provider === 'managed' && relay.mode !== 'never' ? relay.managed : undefined;
};

/** The Mesh that counts. */
export const meshOf = (meshes: readonly Mesh[]): Mesh | undefined =>
  meshes.find(({ metadata }) => metadata.name === MESH_NAME && metadata.deletionTimestamp === undefined);

/** Who needs what we make besides a relay's pods: the relay of the Mesh, or one that somebody else runs here (the chart). */
export const relayUse = (mesh: Mesh | undefined, deployment: Deployment | undefined) => {
  const isManaged = managedRelay(mesh) !== undefined;
  const volumes = deployment && !isOurs(deployment) ? (deployment.spec?.template.spec?.volumes ?? []) : [];
  return {
    isManaged,
    /** A list of the cluster's keys. */
    listed: isManaged || volumes.some(({ configMap }) => configMap?.name === KEYS_CONFIG_MAP),
    /** A secret for links, of a relay that is not ours. */
    linked: volumes.some(({ secret }) => secret?.secretName === LINKS_SECRET),
  };
};

interface Labelled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}
export const isOurs = ({ metadata }: Labelled): boolean => metadata.labels?.[MANAGED_BY] === MANAGER;

const selector = { 'app.kubernetes.io/name': NAME, [MANAGED_BY]: MANAGER } as const;

/** With the Mesh goes what it asked for. */
const metadataOf = (name: string, { mesh, namespace }: Pick<RelayPlace, 'namespace'> & { readonly mesh?: Mesh }) => ({
  name,
  namespace,
  labels: { ...selector, 'app.kubernetes.io/part-of': 'unbounded' },
  ...(mesh && {
    ownerReferences: [
      { apiVersion: GROUP_VERSION, kind: 'Mesh', name: MESH_NAME, uid: mesh.metadata.uid ?? '', controller: true },
    ],
  }),
});

export interface RelayPlace {
  readonly mesh: Mesh;
  readonly namespace: string;
  /** Names of gateways that can be called from outside. */
  readonly publicNodes: readonly string[];
}

/** Of the Mesh, or of nobody: then a relay that is not ours needs it. */
type Keeper = Pick<RelayPlace, 'namespace'> & { readonly mesh?: Mesh };

/** The list of keys, one a line. */
export const keysConfigMap = (place: Keeper, text: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: metadataOf(KEYS_CONFIG_MAP, place),
  data: { [KEYS_FILE]: text },
});

/** What replicas prove to each other. `secret` has 32 bytes or more. */
export const linksSecret = (place: Keeper, secret: string) => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: metadataOf(LINKS_SECRET, place),
  type: 'Opaque',
  stringData: { secret },
});

/** "relay" is how nodes reach it from outside; "relay-headless" stands for all replicas, to each other. */
export const planServices = (place: RelayPlace) => {
  const { port = PORTS.relay, serviceType = 'LoadBalancer' } = managedRelay(place.mesh) ?? {};
  const headless = {
    clusterIP: 'None',
    publishNotReadyAddresses: true, // replicas find each other before they are ready
    selector,
    ports: [
      { name: 'relay', port: PORTS.relay, targetPort: 'relay' },
      { name: 'links', port: PORTS.links, targetPort: 'links' },
    ],
  };
  const outside = {
    type: serviceType,
    // What comes in at a node without a relay would have to take the mesh that the relay is to carry.
    externalTrafficPolicy: 'Local',
    selector,
    ports: [{ name: 'relay', port, targetPort: 'relay' }],
  };
  const service = (name: string, spec: object) => {
    return { apiVersion: 'v1', kind: 'Service', metadata: metadataOf(name, place), spec };
  };
  return [service(HEADLESS, headless), service(NAME, outside)] as const;
};

/** Anybody reaches the port for clients and the one for monitoring; only other replicas that of links. */
export const planNetworkPolicy = (place: RelayPlace) => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: metadataOf(NAME, place),
  spec: {
    podSelector: { matchLabels: selector },
    policyTypes: ['Ingress'],
    ingress: [
      { ports: [PORTS.relay, PORTS.health].map((port) => ({ protocol: 'TCP', port })) },
      { from: [{ podSelector: { matchLabels: selector } }], ports: [{ protocol: 'TCP', port: PORTS.links }] },
    ],
  },
});

/**
 * Draining nodes takes away one replica at a time; a lone one may go too, or its node could never be drained, and those that
 * carry nothing may go at any time.
 */
export const planDisruptionBudget = (place: RelayPlace) => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: metadataOf(NAME, place),
  spec: { maxUnavailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector: { matchLabels: selector } },
});

const flagsOf = ({ mesh, namespace }: RelayPlace): string[] => [
  // Forwarding makes little garbage: a small nursery keeps the process small.
  '--max-semi-space-size=1',
  '/unbounded/apps/relay/dist/main.mjs',
  `--addr=:${PORTS.relay}`,
  `--health-port=${PORTS.health}`,
  `--drain-time=${SECONDS.drain}s`,
  // It stands on the Internet: it serves the cluster's keys, with a proof, and nobody else.
  '--auth=require',
  `--allowed-keys=/etc/relay/keys/${KEYS_FILE}`,
  `--max-bytes-per-second=${MOST_BYTES_PER_SECOND}`,
  ...(mesh.spec.relay?.staticKey === undefined ? [] : ['--key-file=/etc/relay/key/key']),
  ...(managedRelay(mesh)?.tls === undefined
    ? []
    : ['--tls-cert=/etc/relay/tls/tls.crt', '--tls-key=/etc/relay/tls/tls.key']),
  // Nodes that come by node ports are registered with every replica, and links would have to take the mesh.
  ...(isByNodePort({ mesh })
    ? []
    : [
        `--link-addr=:${PORTS.links}`,
        `--link-peers=${HEADLESS}.${namespace}.svc:${PORTS.links}`,
        '--link-secret-file=/etc/relay/links/secret',
      ]),
];

/** What its flags name, as files. */
const volumesOf = ({ mesh }: RelayPlace) => {
  const secret = (name: string, secretName: string) => ({ name, secret: { secretName, defaultMode: 0o440 } });
  return [
    secret('links', LINKS_SECRET),
    { name: 'keys', configMap: { name: KEYS_CONFIG_MAP } },
    ...(mesh.spec.relay?.staticKey === undefined ? [] : [secret('key', STATIC_KEY_SECRET)]),
    ...(managedRelay(mesh)?.tls === undefined ? [] : [secret('tls', TLS_SECRET)]),
  ];
};

const container = (place: RelayPlace, { image, pullPolicy }: RelayImage) => ({
  name: 'relay',
  image,
  imagePullPolicy: pullPolicy,
  args: flagsOf(place),
  ports: Object.entries(PORTS).map(([name, containerPort]) => ({ name, containerPort })),
  livenessProbe: { httpGet: { path: '/healthz', port: 'health' }, initialDelaySeconds: 10, failureThreshold: 6 },
  readinessProbe: { httpGet: { path: '/readyz', port: 'health' }, periodSeconds: 2 },
  // It is out of the Services before it asks its clients to leave: they do not come back to it.
  lifecycle: { preStop: { sleep: { seconds: SECONDS.unlisted } } },
  resources: { requests: { cpu: '200m', memory: '128Mi' }, limits: { memory: '768Mi' } },
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
  volumeMounts: volumesOf(place).map(({ name }) => ({ name, mountPath: `/etc/relay/${name}`, readOnly: true })),
});

const isByNodePort = ({ mesh }: Pick<RelayPlace, 'mesh'>): boolean => managedRelay(mesh)?.serviceType === 'NodePort';

/** A node port leads to one relay of its node: of two there each would know some of the clients alone. */
const replicasOf = (place: RelayPlace, nodes: readonly string[]): number => {
  const { replicas = 1 } = managedRelay(place.mesh) ?? {};
  return isByNodePort(place) ? Math.min(replicas, Math.max(1, nodes.length)) : replicas;
};

const placementOf = (place: RelayPlace, standing: Deployment | undefined): Placement => {
  const placement = { isByNodePort: isByNodePort(place), nodes: place.publicNodes };
  return { ...placement, nodes: nodesToName(placement, managedRelay(place.mesh)?.replicas ?? 1, standing) };
};

const deployment = (place: RelayPlace, image: RelayImage, placement: Placement) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadataOf(NAME, place),
  spec: {
    replicas: replicasOf(place, placement.nodes),
    // A new replica is linked before an old one asks its clients to leave.
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    selector: { matchLabels: selector },
    template: {
      metadata: { labels: selector },
      spec: {
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: SECONDS.grace,
        ...(image.pullSecrets.length > 0 ? { imagePullSecrets: image.pullSecrets.map((name) => ({ name })) } : {}),
        ...affinityOf(placement, selector),
        tolerations: [{ key: GATEWAY_TAINT.key, operator: 'Exists' }],
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: HOSTNAME,
            whenUnsatisfiable: 'ScheduleAnyway',
            labelSelector: { matchLabels: selector },
          },
        ],
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65_532,
          runAsGroup: 65_532,
          fsGroup: 65_532,
          seccompProfile: { type: 'RuntimeDefault' },
        },
        containers: [container(place, image)],
        volumes: volumesOf(place),
      },
    },
  },
});

/** @param standing the Deployment as it is */
export const planDeployment = (place: RelayPlace, image: RelayImage, standing?: Deployment) =>
  deployment(place, image, placementOf(place, standing));
