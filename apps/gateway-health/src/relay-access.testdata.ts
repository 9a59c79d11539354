import { DEFAULT_NAMESPACE as NAMESPACE } from '@unbounded/crds';

import {
  keysConfigMap,
  linksSecret,
  planDeployment,
  planDisruptionBudget,
  planNetworkPolicy,
  planServices,
} from './relay.plan.ts';

/** What somebody can do with gateway-health's token: its right to make pods, Services and Secrets, write by write. */

interface Write {
  readonly verb: 'create' | 'apply';
  readonly path: string;
  readonly body: object;
}

const IMAGE = 'registry.example.com/unbounded:1';
const place = {
  mesh: {
    apiVersion: 'net.unbounded-cloud.io/v1alpha1',
    kind: 'Mesh',
    metadata: { name: 'default', uid: 'd9607e19-f88f-11e6-a518-42010a800195' },
    spec: { relay: { provider: 'managed', managed: {} } },
  },
  namespace: NAMESPACE,
  publicNodes: ['n1'],
} as const;
const [headless, outside] = planServices(place);
export const deployment = planDeployment(place, { image: IMAGE, pullPolicy: 'Always', pullSecrets: ['pull'] });
export const planned = {
  headless,
  service: outside,
  secret: linksSecret(place, 'x'.repeat(32)),
  keys: keysConfigMap(place, ''),
  policy: planNetworkPolicy(place),
  budget: planDisruptionBudget(place),
  deployment,
};
export type Which = keyof typeof planned;
const COLLECTIONS: Readonly<Record<Which, string>> = {
  headless: '/api/v1/namespaces/NS/services',
  service: '/api/v1/namespaces/NS/services',
  secret: '/api/v1/namespaces/NS/secrets',
  keys: '/api/v1/namespaces/NS/configmaps',
  policy: '/apis/networking.k8s.io/v1/namespaces/NS/networkpolicies',
  budget: '/apis/policy/v1/namespaces/NS/poddisruptionbudgets',
  deployment: '/apis/apps/v1/namespaces/NS/deployments',
};
const collection = (which: Which, namespace: string = NAMESPACE): string => COLLECTIONS[which].replace('NS', namespace);
export const pathOf = (which: Which, name: string = planned[which].metadata.name): string =>
  `${collection(which)}/${name}`;
export const apply = (which: Which, body: object = planned[which]): Write => ({
  verb: 'apply',
  path: pathOf(which),
  body,
});

/** As planned, but for what RFC 7396 says. */
export const merged = (target: unknown, patch: unknown): unknown => {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> = { ...(target as object) };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
};
export const but = (which: Which, patch: object): Write => apply(which, merged(planned[which], patch) as object);
const pod = (patch: object): Write => but('deployment', { spec: { template: { spec: patch } } });
const [container] = deployment.spec.template.spec.containers;
export const inContainer = (patch: object): Write => pod({ containers: [merged(container, patch)] });
/** Without the arguments that begin so, and with these. */
const withArgs = (without: string, ...more: string[]): Write =>
  inContainer({ args: [...container!.args.filter((arg) => without === '' || !arg.startsWith(without)), ...more] });
const KEYS_VOLUME = { name: 'keys', configMap: { name: 'relay-keys' } };
/** In the place of the first of its volumes. */
const mounts = (volume: object): Write => pod({ volumes: [volume, KEYS_VOLUME] });
const secretVolume = (name: string) => ({ name: 'links', secret: { secretName: name } });

export const RBAC = 'cannot';
const FIELDS = 'may not add these fields: ';
export const ADDRESSES = 'gives its Services no addresses';
const ROOT = 'run as no root';
const RELAY = 'run the relay';
const LABELS = 'may add no other, and only annotations';
const AUTH = 'with a proof';
const MOUNTS = 'its own volumes alone';
export const MARKS = 'may give its objects only';

export const forbidden: readonly (readonly [what: string, write: Write, refusal: string])[] = [
  // What its pods may read.
  [
    'reads a Secret into a variable',
    inContainer({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'helm', key: 'release' } } }] }),
    `${FIELDS}env`,
  ],
  [
    'reads a Secret into the environment',
    inContainer({ envFrom: [{ secretRef: { name: 'helm' } }] }),
    `${FIELDS}envFrom`,
  ],
  [
    'sets a variable',
    inContainer({ env: [{ name: 'NODE_OPTIONS', value: '--import=data:text/javascript,1' }] }),
    `${FIELDS}env`,
  ],
  ['mounts another Secret', mounts(secretVolume('helm')), 'mount nothing but'],
  [
    'mounts another Secret beside its own',
    pod({ volumes: [secretVolume('relay-links'), KEYS_VOLUME, { name: 'b', secret: { secretName: 'helm' } }] }),
    'mount nothing but',
  ],
  [
    'mounts a Secret by projection',
    mounts({ name: 'links', projected: { sources: [{ secret: { name: 'helm' } }] } }),
    'mount nothing but',
  ],
  [
    'mounts a token by projection',
    mounts({ name: 'links', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }),
    'mount nothing but',
  ],
  ['mounts a ConfigMap', mounts({ name: 'links', configMap: { name: 'kube-root-ca.crt' } }), 'mount nothing but'],
  ['mounts a folder of the host', mounts({ name: 'links', hostPath: { path: '/' } }), 'mount nothing but'],
  ['mounts an image', mounts({ name: 'links', csi: { driver: 'a.example.com' } }), 'mount nothing but'],
  [
    'uses another Secret for its image',
    pod({ imagePullSecrets: [{ name: 'other' }] }),
    'use no Secret for their image',
  ],
  ['has the account of another program', pod({ serviceAccountName: 'site-membership' }), `${FIELDS}serviceAccount`],
  ['has a token', pod({ automountServiceAccountToken: true }), 'automountServiceAccountToken must be false'],
  // What of the host they may have.
  ['has the network of the host', pod({ hostNetwork: true }), `${FIELDS}hostNetwork`],
  ['has the processes of the host', pod({ hostPID: true }), `${FIELDS}hostPID`],
  ['has the IPC of the host', pod({ hostIPC: true }), `${FIELDS}hostIPC`],
  [
    'takes a port of the host',
    inContainer({ ports: [{ name: 'relay', containerPort: 3478, hostPort: 443 }] }),
    'no port of their host',
  ],
  ['is privileged', inContainer({ securityContext: { privileged: true, allowPrivilegeEscalation: true } }), ROOT],
  ['has a capability', inContainer({ securityContext: { capabilities: { add: ['NET_ADMIN'] } } }), ROOT],
  ['keeps the usual capabilities', inContainer({ securityContext: { capabilities: null } }), ROOT],
  ['may get privileges', inContainer({ securityContext: { allowPrivilegeEscalation: null } }), ROOT],
  ['may write to its root', inContainer({ securityContext: { readOnlyRootFilesystem: false } }), ROOT],
  ['is root', pod({ securityContext: { runAsUser: 0, runAsNonRoot: null } }), ROOT],
  ['is root in the container', inContainer({ securityContext: { runAsUser: 0 } }), ROOT],
  ['may be root', pod({ securityContext: { runAsNonRoot: false } }), ROOT],
  ['has no seccomp profile', pod({ securityContext: { seccompProfile: { type: 'Unconfined' } } }), ROOT],
  [
    'has another seccomp profile in the container',
    inContainer({ securityContext: { seccompProfile: { type: 'Unconfined' } } }),
    ROOT,
  ],
  ['has another SELinux type', pod({ securityContext: { seLinuxOptions: { type: 'spc_t' } } }), ROOT],
  ['sets a sysctl', pod({ securityContext: { sysctls: [{ name: 'net.ipv4.ip_forward', value: '1' }] } }), ROOT],
  ['chooses its node', pod({ nodeName: 'n1' }), `${FIELDS}nodeName`],
  ['chooses its nodes', pod({ nodeSelector: { a: 'b' } }), `${FIELDS}nodeSelector`],
  ['has another runtime', pod({ runtimeClassName: 'other' }), `${FIELDS}runtimeClassName`],
  ['displaces others', pod({ priorityClassName: 'system-node-critical' }), `${FIELDS}priorityClassName`],
  ['stands on nodes that are kept free', pod({ tolerations: [{ operator: 'Exists' }] }), 'tolerate no taint'],
  ['asks for a device', inContainer({ resources: { limits: { 'example.com/gpu': 1 } } }), 'ask for no resources but'],
  // What they may run.
  [
    'runs another image',
    inContainer({ image: 'registry.example.com/other:1' }),
    `run the image ${IMAGE}, not registry.example.com/other:1`,
  ],
  ['runs another version', inContainer({ image: 'registry.example.com/unbounded:2' }), `run the image ${IMAGE}`],
  ['runs another command', inContainer({ command: ['/usr/bin/node'] }), `${FIELDS}command`],
  [
    'runs another program',
    inContainer({ args: ['--max-semi-space-size=1', '/unbounded/apps/gateway-health/dist/main.mjs'] }),
    RELAY,
  ],
  ['runs code from its arguments', inContainer({ args: ['-e', 'process.exit()'] }), RELAY],
  [
    'runs code before the relay',
    inContainer({ args: ['--import=data:text/javascript,1', '/unbounded/apps/relay/dist/main.mjs'] }),
    RELAY,
  ],
  ['asks its clients for no proof', withArgs('--auth', '--auth=prefer'), AUTH],
  ['asks its clients for no proof by a second word', withArgs('', '--auth=off'), AUTH],
  ['does not say whether it asks for a proof', withArgs('--auth'), AUTH],
  ['serves any key', withArgs('--allowed-keys'), AUTH],
  ['serves a list of keys of its own', withArgs('--allowed-keys', '--allowed-keys=/etc/relay/links/secret'), AUTH],
  [
    'has the list of keys in the place of the program',
    inContainer({ volumeMounts: [{ name: 'keys', mountPath: '/unbounded/apps/relay/dist' }] }),
    MOUNTS,
  ],
  [
    'has the list of keys in the place of the program by a way round',
    inContainer({ volumeMounts: [{ name: 'keys', mountPath: '/etc/relay/../../unbounded/apps/relay/dist' }] }),
    MOUNTS,
  ],
  ['runs a second container', pod({ containers: [container, { ...container, name: 'b' }] }), 'have one container'],
  ['runs a container before it', pod({ initContainers: [{ name: 'b', image: IMAGE }] }), `${FIELDS}initContainers`],
  [
    'runs a command as probe',
    inContainer({ livenessProbe: { httpGet: null, exec: { command: ['/bin/sh'] } } }),
    'probes of the relay',
  ],
  [
    'lets kubelets ask others',
    inContainer({ livenessProbe: { httpGet: { host: '169.254.169.254', path: '/', port: 80 } } }),
    'probes of the relay',
  ],
  [
    'lets kubelets ask others when it ends',
    inContainer({ lifecycle: { preStop: { sleep: null, httpGet: { host: '169.254.169.254', port: 80 } } } }),
    'probes of the relay',
  ],
  ['runs too many', but('deployment', { spec: { replicas: 5000 } }), 'at most 100'],
  [
    'has the labels of other pods',
    but('deployment', { spec: { template: { metadata: { labels: { app: 'dns' } } } } }),
    LABELS,
  ],
  [
    'has a label more than them',
    but('deployment', { spec: { template: { metadata: { labels: { 'example.com/policy': 'open' } } } } }),
    LABELS,
  ],
  [
    'is joined to another network',
    but('deployment', { spec: { template: { metadata: { annotations: { 'k8s.v1.cni.cncf.io/networks': 'a' } } } } }),
    LABELS,
  ],
  // The Services.
  ['takes an external address', but('service', { spec: { externalIPs: ['192.0.2.1'] } }), ADDRESSES],
  [
    'takes an external address by the other Service',
    but('headless', { spec: { externalIPs: ['192.0.2.1'] } }),
    ADDRESSES,
  ],
  ['chooses the address of its balancer', but('service', { spec: { loadBalancerIP: '192.0.2.1' } }), ADDRESSES],
  ['chooses its balancer', but('service', { spec: { loadBalancerClass: 'example.com/other' } }), ADDRESSES],
  ['lets only some in', but('service', { spec: { loadBalancerSourceRanges: ['192.0.2.0/24'] } }), ADDRESSES],
  [
    'stands for a name elsewhere',
    but('service', { spec: { type: 'ExternalName', externalName: 'example.com', externalTrafficPolicy: null } }),
    ADDRESSES,
  ],
  [
    'leads to other pods',
    but('service', { spec: { selector: { 'app.kubernetes.io/name': 'other' } } }),
    'lead to the pods of its relay',
  ],
  ['leads to all pods', but('service', { spec: { selector: null } }), 'lead to the pods of its relay'],
  [
    'leads to other pods by the other Service',
    but('headless', { spec: { selector: { a: 'b' } } }),
    'lead to the pods of its relay',
  ],
  [
    'is published under another name',
    but('service', { metadata: { annotations: { 'external-dns.alpha.kubernetes.io/hostname': 'a.example.com' } } }),
    MARKS,
  ],
  // Marks of all of them.
  [
    'gives itself a label',
    but('service', { metadata: { labels: { 'service.kubernetes.io/service-proxy-name': 'a' } } }),
    MARKS,
  ],
  ['gives its Deployment an annotation', but('deployment', { metadata: { annotations: { a: 'b' } } }), MARKS],
  [
    'keeps objects of others from going',
    but('secret', { metadata: { finalizers: ['example.com/a'] } }),
    'no owner but the Mesh, and no finalizer',
  ],
  [
    'hangs on a Node',
    but('policy', { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'x' }] } }),
    'no owner but the Mesh',
  ],
  // The Secret, and the guards.
  [
    'gets the token of another account',
    but('secret', {
      type: 'kubernetes.io/service-account-token',
      metadata: { annotations: { 'kubernetes.io/service-account.name': 'site-membership' } },
    }),
    'gateway-health may',
  ],
  ['writes a Secret of another type', but('secret', { type: 'example.com/a' }), 'only Secrets of type Opaque'],
  [
    'guards all pods',
    but('policy', { spec: { podSelector: { matchLabels: null } } }),
    'guard no pods but those of the relay',
  ],
  [
    'guards pods of others',
    but('policy', { spec: { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'node-dataplane' } } } }),
    'guard no pods but those of the relay',
  ],
  [
    'keeps pods of others on their nodes',
    but('budget', { spec: { selector: { matchLabels: null } } }),
    'guard no pods but those of the relay',
  ],
  ['keeps nodes from being drained', but('budget', { spec: { maxUnavailable: 0 } }), 'maxUnavailable: 1'],
  [
    'keeps nodes from being drained by a minimum',
    but('budget', { spec: { maxUnavailable: null, minAvailable: 1 } }),
    'maxUnavailable: 1',
  ],
];

/** Other names and namespaces, whatever is in the object. */
export const elsewhere: readonly (readonly [what: string, write: Write])[] = (Object.keys(planned) as Which[]).flatMap(
  (which) => {
    const body = planned[which];
    const renamed = merged(body, { metadata: { name: 'other' } }) as object;
    const moved = merged(body, { metadata: { namespace: 'default' } }) as object;
    return [
      [`${body.kind} of another name`, { verb: 'apply', path: `${collection(which)}/other`, body: renamed }],
      [`${body.kind} without being asked for its name`, { verb: 'create', path: collection(which), body: renamed }],
      [
        `${body.kind} ${body.metadata.name} in another namespace`,
        { verb: 'apply', path: `${collection(which, 'default')}/${body.metadata.name}`, body: moved },
      ],
    ] as const;
  },
);
