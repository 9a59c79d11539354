import { RELAY_SERVICE } from '@unbounded/config/ownership';
import { GATEWAY_TAINT, GROUP_VERSION, labels, type Mesh, MESH_NAME, type RelaySpec } from '@unbounded/crds';

/** The relay that a Mesh asks us to run, as objects. It is what the chart's relay subchart runs. */

/** Value of the label by which our objects are told from those of people and of the chart. */
export const MANAGER = 'gateway-health';
const MANAGED_BY = 'app.kubernetes.io/managed-by';
/** Label of nodes. */
export const HOSTNAME = 'kubernetes.io/hostname';
const NAME = RELAY_SERVICE;
const HEADLESS = `${NAME}-headless`;
export const LINKS_SECRET = `${NAME}-links`;

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

interface Labelled {
  readonly metadata: { readonly labels?: Readonly<Record<string, string>> };
}
export const isOurs = ({ metadata }: Labelled): boolean => metadata.labels?.[MANAGED_BY] === MANAGER;

const selector = { 'app.kubernetes.io/name': NAME, [MANAGED_BY]: MANAGER } as const;

/** With the Mesh goes what it asked for. */
const metadataOf = (name: string, { mesh, namespace }: RelayPlace) => ({
  name,
  namespace,
  labels: { ...selector, 'app.kubernetes.io/part-of': 'unbounded' },
  ownerReferences: [
    { apiVersion: GROUP_VERSION, kind: 'Mesh', name: MESH_NAME, uid: mesh.metadata.uid ?? '', controller: true },
  ],
});

export interface RelayPlace {
  readonly mesh: Mesh;
  readonly namespace: string;
  /** Hostnames (the label) of nodes that can be called from outside: gateways, for one. */
  readonly publicNodes: readonly string[];
}

/** What replicas prove to each other. `secret` has 32 bytes or more. */
export const linksSecret = (place: RelayPlace, secret: string) => ({
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
  // Nodes that come by node ports are registered with every replica, and links would have to take the mesh.
  ...(managedRelay(mesh)?.serviceType === 'NodePort'
    ? []
    : [
        `--link-addr=:${PORTS.links}`,
        `--link-peers=${HEADLESS}.${namespace}.svc:${PORTS.links}`,
        '--link-secret-file=/etc/relay/links/secret',
      ]),
];

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
  volumeMounts: [{ name: 'links', mountPath: '/etc/relay/links', readOnly: true }],
});

/** More would make the object large; relays need few. */
const MOST_NODES = 64;

/** Behind a balancer every replica must reach every other: in one site that does not take the mesh. */
const BESIDE_EACH_OTHER = {
  preferredDuringSchedulingIgnoredDuringExecution: [
    { weight: 100, podAffinityTerm: { topologyKey: labels.site, labelSelector: { matchLabels: selector } } },
  ],
};

/** Relays are best where they can be called: a node port leads nowhere else, a balancer may. */
const affinityOf = ({ mesh, publicNodes }: RelayPlace): object => {
  const isByNodePort = managedRelay(mesh)?.serviceType === 'NodePort';
  const values = publicNodes.toSorted().slice(0, MOST_NODES);
  const preference = { matchExpressions: [{ key: HOSTNAME, operator: 'In', values }] };
  const nodeAffinity = isByNodePort
    ? { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [preference] } }
    : { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 100, preference }] };
  const affinity = {
    ...(values.length > 0 && { nodeAffinity }),
    ...(!isByNodePort && { podAffinity: BESIDE_EACH_OTHER }),
  };
  return Object.keys(affinity).length === 0 ? {} : { affinity };
};

/** A node port leads to one relay of its node: of two there each would know some of the clients alone. */
const replicasOf = ({ mesh, publicNodes }: RelayPlace): number => {
  const { replicas = 1, serviceType } = managedRelay(mesh) ?? {};
  return serviceType === 'NodePort' ? Math.min(replicas, Math.max(1, publicNodes.length)) : replicas;
};

export const planDeployment = (place: RelayPlace, image: RelayImage) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: metadataOf(NAME, place),
  spec: {
    replicas: replicasOf(place),
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
        ...affinityOf(place),
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
        volumes: [{ name: 'links', secret: { secretName: LINKS_SECRET, defaultMode: 0o440 } }],
      },
    },
  },
});
