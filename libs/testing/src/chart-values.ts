/** A value for every setting of the chart. */

export const DIGEST = `sha256:${'0a'.repeat(32)}`;

export const everything = {
  global: {
    image: {
      registry: 'm.example:5000',
      repository: 'r.example/unbounded',
      tag: 'v9',
      digest: DIGEST,
      pullSecrets: ['pull'],
    },
    apiServer: { host: 'api.example.com', port: 443 },
    host: { keys: '/var/lib/wireguard', state: '/var/state' },
    resourceQuota: { pods: 500 },
    tailnet: { caBundle: '-----BEGIN CERTIFICATE-----' },
    tracing: { endpoint: 'http://otel.example:4318' },
  },
  'cidr-allocator': {
    extraArgs: ['--on-exhaustion=exit'],
    nodeSelector: { a: 'b' },
    podAnnotations: { c: 'd' },
    updateStrategy: { type: 'Recreate' },
  },
  'site-membership': {
    affinity: { nodeAffinity: {} },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'zone',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector: { matchLabels: { a: 'b' } },
      },
    ],
  },
  'static-egress': { extraArgs: ['--service-cidrs=10.96.0.0/12'], podDisruptionBudget: { enabled: false } },
  'l2-networks': { enabled: true, logLevel: 'debug', extraEnv: [{ name: 'A', value: 'b' }], podLabels: { a: 'b' } },
  'tailnet-registrar': { enabled: true, secretNames: ['tailnet'], uninstall: { enabled: true, timeoutSeconds: 60 } },
  tailnet: {
    ...{ enabled: true, clusterCidrs: ['10.96.0.0/12', 'fd00:96::/112'], seLinuxOptions: { type: 'spc_t' } },
    devices: { extraArgs: ['--pod-start=/usr/bin/pod-start'], resources: { limits: { memory: '2Gi' } } },
  },
  'status-aggregator': {
    ...{ tls: { secretName: 'status-tls' }, maxClients: 20, aggregateToView: false, autoscaling: { enabled: true } },
    redis: { url: 'rediss://u@redis.example:6380/1', secretName: 'redis', caSecretName: 'redis-ca', cluster: 'c' },
  },
  'node-dataplane': {
    maxUnavailable: '10%',
    seLinuxOptions: { type: 'spc_t' },
    ...{ networkManagerDropIns: true, tailnet: true },
    cniPlugins: { image: 'r.example/cni', command: ['cp', '-r', '/plugins/.', '/host/opt/cni/bin'] },
  },
  'node-keeper': {
    updateStrategy: { type: 'RollingUpdate' },
    serviceAccount: { annotations: { a: 'b' } },
    extraEnv: [{ name: 'A', value: 'b' }],
    seLinuxOptions: { type: 'spc_t' },
    affinity: { nodeAffinity: {} },
  },
};
