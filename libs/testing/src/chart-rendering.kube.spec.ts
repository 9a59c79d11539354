import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';

import {
  chartFolder,
  helmProgram,
  isKind,
  isWorkload,
  type Manifest,
  NAMESPACE,
  renderChart,
  renderChartOnce,
  renderText,
  yamlOf,
} from './chart.ts';
import { DIGEST, everything } from './chart-values.ts';
import { podOf, workloads } from './chart-workloads.ts';

const controllers = ['cidr-allocator', 'site-membership', 'gateway-health', 'static-egress'];

test('helm finds nothing to complain of', () => {
  const lint = execFileSync(helmProgram(), ['lint', '--strict', chartFolder], { encoding: 'utf8', stdio: 'pipe' });
  expect(lint).toContain('0 chart(s) failed');
});

test('no object names another namespace than the one it is installed in', () => {
  const objects = renderChartOnce({ namespace: 'elsewhere' });
  expect(yamlOf(objects)).not.toContain(NAMESPACE);
  expect(yamlOf(objects)).toContain('system:serviceaccount:elsewhere:node-dataplane');
  const namespaced = objects.filter(
    ({ kind }) => isWorkload({ kind } as Manifest) || /^(Role|RoleBinding|ServiceAccount)$/.test(kind),
  );
  const outside = namespaced.filter(({ metadata }) => metadata.namespace !== 'elsewhere');
  // Kubernetes keeps Events about objects without a namespace, as all of ours are, in "default".
  const events = ['cidr-allocator', 'gateway-health', 'node-dataplane', 'site-membership'].map(
    (name) => `unbounded:${name}`,
  );
  expect(new Set(outside.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['default']));
  expect(outside.map(({ metadata }) => metadata.name).toSorted()).toEqual([...events, ...events].toSorted());
});

test('the same values make the same objects, whatever is in a cluster', () => {
  const values = {
    ...everything,
    relay: { enabled: true, autoscaling: { enabled: true }, tls: { secretName: 't' } },
  };
  expect(renderText({ values })).toBe(renderText({ values }));
  expect(renderText()).toBe(renderText());
});

test('values of an installation from before, which --reuse-values keeps, are enough', () => {
  const programs = [...controllers, 'node-dataplane', 'node-keeper'];
  const values = {
    ...Object.fromEntries(programs.map((name) => [name, { image: null }])),
    'gateway-health': { image: null, relayImage: null },
    global: { image: { digest: null }, host: null, resourceQuota: null, tailnet: null },
  };
  expect(renderChartOnce({ values })).toEqual(renderChartOnce());
});

test('no template asks the cluster, the clock or chance', () => {
  const templates = ['.', '../library'].flatMap((folder) =>
    readdirSync(join(chartFolder, folder), { recursive: true, encoding: 'utf8' })
      .map((file) => join(folder, file))
      .filter((file) => /templates\/.*\.(yaml|tpl|txt)$/.test(file)),
  );
  expect(templates).toContain('../library/templates/_pod.tpl');
  expect(templates.length).toBeGreaterThan(20);
  const changing =
    /\b(lookup|rand(AlphaNum|Alpha|Numeric|Ascii|Bytes|Int)|uuidv4|shuffle|now|gen(CA|PrivateKey|SignedCert|SelfSignedCert)\w*|getHostByName|htpasswd|bcrypt|Capabilities)\b/;
  const found = templates.filter((file) => {
    const actions = readFileSync(`${chartFolder}/${file}`, 'utf8').match(/\{\{[\s\S]*?\}\}/g) ?? [];
    return actions.some((action) => !/^\{\{-? ?\/\*/.test(action) && changing.test(action));
  });
  expect(found).toEqual([]);
});

const images = (values: object): Record<string, string> =>
  Object.fromEntries([...workloads(values)].map(([name]) => [name, podOf(name, values).containers[0]!.image]));
const relayImage = (values: object): string | undefined =>
  podOf('gateway-health', values).containers[0]!.args?.find((arg) => arg.startsWith('--relay-image='));

describe('images', () => {
  const repository = 'r.example/unbounded';
  test.each<[string, object, string]>([
    ['by the chart’s version', {}, 'unbounded.local/unbounded:0.1.0'],
    ['by tag', { repository, tag: 'v9' }, `${repository}:v9`],
    ['by digest', { repository, digest: DIGEST }, `${repository}@${DIGEST}`],
    ['by both', { repository, tag: 'v9', digest: DIGEST }, `${repository}:v9@${DIGEST}`],
  ])('all programs have the same, %s', (_, image, expected) => {
    expect(new Set(Object.values(images({ global: { image }, relay: { enabled: true } })))).toEqual(
      new Set([expected]),
    );
    expect(relayImage({ global: { image } })).toBe(`--relay-image=${expected}`);
  });

  test('a program may have its own, and relays that a Mesh asks for too: the policy knows', () => {
    const values = {
      global: { image: { repository, digest: DIGEST } },
      'node-keeper': { image: { tag: 'v7' } },
      'node-dataplane': { image: { repository: 'r.example/agent' } },
      'gateway-health': { relayImage: { repository: 'r.example/relay', tag: 'v8' } },
    };
    expect(images(values)).toMatchObject({
      'node-keeper': `${repository}:v7`,
      'node-dataplane': `r.example/agent@${DIGEST}`,
      'gateway-health': `${repository}@${DIGEST}`,
    });
    expect(relayImage(values)).toBe('--relay-image=r.example/relay:v8');
    expect(yamlOf(renderChartOnce({ values }))).toContain("container.image == 'r.example/relay:v8'");
  });
});

test('agent and keeper of a node share the folders of keys that the values name', () => {
  const values = { global: { host: { keys: '/var/lib/wireguard', state: '/var/state' } } };
  const paths = (name: string) => podOf(name, values).volumes!.map(({ hostPath }) => hostPath?.path);
  expect(paths('node-dataplane')).toEqual(expect.arrayContaining(['/var/lib/wireguard', '/var/state']));
  expect(paths('node-keeper')).toContain('/var/lib/wireguard');
  for (const name of ['node-dataplane', 'node-keeper'])
    expect(paths(name).join(' ')).not.toMatch(/\/etc\/wireguard|lib\/unbounded/);
});

describe('rights', () => {
  test('no container is privileged, sees other processes of the host, or can write to its own files', () => {
    for (const { spec } of workloads().values()) {
      const { hostPID, containers } = spec.template.spec;
      expect(hostPID).toBeUndefined();
      for (const { securityContext } of containers) {
        expect(securityContext.privileged).toBeUndefined();
        expect(securityContext.readOnlyRootFilesystem).toBe(true);
        expect(securityContext.capabilities.drop).toEqual(['ALL']);
      }
    }
  });

  test('controllers have a user of their own and no capability', () => {
    const enabled = { 'l2-networks': { enabled: true }, 'tailnet-registrar': { enabled: true } };
    for (const name of [...controllers, 'l2-networks', 'tailnet-registrar']) {
      const { securityContext, containers } = podOf(name, enabled);
      expect(securityContext.runAsNonRoot).toBe(true);
      expect(containers[0]!.securityContext.capabilities.add).toBeUndefined();
    }
  });

  test('the agents have these capabilities and no more', () => {
    const added = (name: string) => podOf(name).containers[0]!.securityContext.capabilities.add;
    expect(added('node-keeper')).toEqual(['NET_ADMIN']);
    expect(added('node-dataplane')).toEqual(['NET_ADMIN', 'NET_RAW', 'BPF', 'PERFMON', 'SYS_NICE', 'SYS_ADMIN']);
  });

  test('the keeper has no token, and is replaced only when somebody deletes it', () => {
    expect(podOf('node-keeper').automountServiceAccountToken).toBe(false);
    expect(workloads().get('node-keeper')!.spec.updateStrategy).toEqual({ type: 'OnDelete' });
  });

  test('nobody is given a role that is not of this chart', () => {
    const objects = renderChartOnce() as (Manifest & {
      roleRef?: { kind: string; name: string };
      rules?: object;
      aggregationRule?: object;
    })[];
    const roles = objects
      .filter(({ rules, aggregationRule }) => rules ?? aggregationRule)
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const { roleRef } of objects.filter((object) => object.roleRef))
      expect(roles).toContain(`${roleRef!.kind} ${roleRef!.name}`);
    expect(yamlOf(objects.filter(({ rules }) => rules))).not.toMatch(/['"]\*['"]/);
  });
});

test('every program that pods’ network depends on runs on that of the hosts, and reaches the API server by the address that the hosts know', () => {
  for (const [name, { spec }] of workloads({ global: { apiServer: { host: 'fd00::1', port: 8443 } } })) {
    const { hostNetwork, containers } = spec.template.spec;
    expect(hostNetwork ?? false, name).toBe(name !== 'status-aggregator');
    if (name === 'status-aggregator') continue;
    if (name === 'node-keeper') continue;
    expect(containers[0]!.env, name).toEqual(
      expect.arrayContaining([
        { name: 'KUBERNETES_SERVICE_HOST', value: 'fd00::1' },
        { name: 'KUBERNETES_SERVICE_PORT', value: '8443' },
      ]),
    );
  }
});

test('a single replica has no disruption budget, which would keep its node from being drained', () => {
  const budgets = renderChartOnce({ values: { 'gateway-health': { replicas: 1 } } }).filter(
    ({ kind }) => kind === 'PodDisruptionBudget',
  );
  expect(budgets.map(({ metadata }) => metadata.name).sort()).toEqual([
    'cidr-allocator',
    'site-membership',
    'static-egress',
  ]);
});

describe('several replicas of status-aggregator', () => {
  const redis = { url: 'redis://redis.example', secretName: 'redis' };
  const objectsOf = (values: object) =>
    renderChartOnce({ values: { 'status-aggregator': values } }).filter(
      ({ metadata }) => metadata.name === 'status-aggregator',
    );
  const kindsOf = (values: object): string[] => objectsOf(values).map(({ kind }) => kind);
  const podWith = (values: object) => podOf('status-aggregator', { 'status-aggregator': values });

  test('share by Redis, whose password is a file', () => {
    const { containers, volumes } = podWith({ replicas: 3, redis });
    const { args, volumeMounts, env } = containers[0]!;
    expect(args).toEqual(
      expect.arrayContaining([
        '--redis-url=redis://redis.example',
        '--redis-cluster=default',
        '--redis-password-file=/etc/status-aggregator/redis/password',
      ]),
    );
    expect(volumeMounts).toEqual([{ name: 'redis', mountPath: '/etc/status-aggregator/redis', readOnly: true }]);
    expect(volumes).toMatchObject([{ name: 'redis', secret: { secretName: 'redis' } }]);
    expect(env!.map(({ name }) => name)).toEqual(['POD_NAMESPACE']);
  });

  test('have a disruption budget and go apart, one alone has neither', () => {
    const budget = 'PodDisruptionBudget';
    expect(kindsOf({ replicas: 2, redis })).toContain(budget);
    expect(kindsOf({ replicas: 1, redis })).not.toContain(budget);
    expect(kindsOf({ replicas: 2, redis, podDisruptionBudget: { enabled: false } })).not.toContain(budget);
    expect(podWith({ replicas: 2, redis })).toMatchObject({
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { podAffinityTerm: { topologyKey: 'kubernetes.io/hostname' } },
          ],
        },
      },
    });
    expect(podWith({ replicas: 1 })).not.toHaveProperty('affinity');
    const constraint = { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' };
    const own = { affinity: { nodeAffinity: {} }, topologySpreadConstraints: [constraint] };
    expect(podWith({ replicas: 2, redis, ...own })).toMatchObject({ affinity: { nodeAffinity: {} } });
    expect(podWith({ replicas: 2, redis, ...own })).not.toHaveProperty('affinity.podAntiAffinity');
    expect(podWith({ replicas: 2, redis, ...own })).toMatchObject({ topologySpreadConstraints: [constraint] });
  });

  test('are as many as an autoscaler wants, where there is one', () => {
    const values = { redis, autoscaling: { enabled: true, maxReplicas: 5 } };
    expect(kindsOf(values)).toEqual(expect.arrayContaining(['HorizontalPodAutoscaler', 'PodDisruptionBudget']));
    expect(workloads({ 'status-aggregator': values }).get('status-aggregator')!.spec).not.toHaveProperty('replicas');
    expect(objectsOf(values).find(({ kind }) => kind === 'HorizontalPodAutoscaler')).toMatchObject({
      spec: { minReplicas: 2, maxReplicas: 5, scaleTargetRef: { kind: 'Deployment', name: 'status-aggregator' } },
    });
    expect(kindsOf({})).not.toContain('HorizontalPodAutoscaler');
  });
});

test('cleaning up runs once on each node, and what stays has no right at all', () => {
  const { initContainers, containers } = podOf('node-dataplane', { 'node-dataplane': { cleanup: true } });
  expect(initContainers).toMatchObject([{ name: 'cleanup', args: [expect.stringContaining('main.mjs'), 'cleanup'] }]);
  expect(containers[0]!.securityContext.capabilities).toEqual({ drop: ['ALL'] });
});

test('agents report by a token of its own audience, unless nobody takes reports', () => {
  const agent = (values: object) => {
    const { volumes, containers } = podOf('node-dataplane', { 'node-dataplane': values });
    return { args: containers[0]!.args ?? [], names: volumes!.map(({ name }) => name) };
  };
  expect(agent({}).args).toContain('--status-service=status-aggregator');
  expect(agent({}).names).toContain('status-token');
  for (const values of [{ statusReports: false }, { cleanup: true }]) {
    expect(agent(values).args.join(' ')).not.toContain('--status-service');
    expect(agent(values).names).not.toContain('status-token');
  }
});

describe('files for the hosts’ network managers', () => {
  const ETC = '/etc';
  const flag = '--host-etc-dir=/host/etc';
  const agent = (values: object) => {
    const pod = podOf('node-dataplane', { 'node-dataplane': values });
    return { ...pod, paths: pod.volumes!.map(({ hostPath }) => hostPath?.path), agent: pod.containers[0]! };
  };

  test('are not written unless somebody asks for them: the pod sees no /etc of the host', () => {
    for (const values of [{}, { networkManagerDropIns: false }, { cleanup: true }]) {
      const { paths, ...pod } = agent(values);
      expect(paths).not.toContain(ETC);
      expect(yamlOf([pod as unknown as Manifest])).not.toContain('host-etc');
    }
  });

  test('are written by the agent, which has the host’s /etc then', () => {
    const { paths, agent: container } = agent({ networkManagerDropIns: true });
    expect(paths).toContain(ETC);
    expect(container.args).toContain(flag);
    expect(container.volumeMounts).toContainEqual({ name: 'host-etc', mountPath: '/host/etc' });
  });

  test('are taken away by the clean-up alone', () => {
    const { initContainers, agent: rest } = agent({ networkManagerDropIns: true, cleanup: true });
    expect(initContainers![0]).toMatchObject({ name: 'cleanup', args: [expect.anything(), 'cleanup', flag] });
    expect(initContainers![0]!.volumeMounts).toContainEqual({ name: 'host-etc', mountPath: '/host/etc' });
    expect([rest.args?.includes(flag), rest.volumeMounts]).toEqual([false, undefined]);
  });
});

test('stretched L2 is off unless it is turned on: no program, no right of an agent on its objects', () => {
  const named = (values: object) =>
    renderChartOnce({ values }).filter(
      (object) => !isKind(object) && /l2-networks|networkendpoints|fdbentries/.test(yamlOf([object])),
    );
  expect(named({})).toEqual([]);
  expect(workloads({ 'l2-networks': { enabled: true } }).get('l2-networks')!.spec.replicas).toBe(2);
  expect(named({ 'l2-networks': { enabled: true } }).map(({ metadata }) => metadata.name)).toEqual(
    expect.arrayContaining(['unbounded:node-dataplane-l2', 'unbounded-node-agent-l2-entries']),
  );
});

test('a part can be left out', () => {
  const objects = renderChartOnce({ values: { 'node-keeper': { enabled: false }, crds: { enabled: false } } });
  expect(objects.filter((object) => isKind(object) || object.metadata.name === 'node-keeper')).toEqual([]);
});

test.each([
  [{ 'cidr-allocator': { replica: 3 } }, "at '/cidr-allocator': additional properties 'replica' not allowed"],
  [{ 'cidr-alocator': { replicas: 3 } }, "additional properties 'cidr-alocator' not allowed"],
  [{ 'gateway-health': { logLevel: 'loud' } }, "value must be one of 'trace', 'debug', 'info', 'warn', 'error'"],
  [{ 'node-dataplane': { networkManagerDropIns: 'yes' } }, "at '/node-dataplane/networkManagerDropIns'"],
  [{ 'node-dataplane': { maxUnavailable: 'all' } }, "at '/node-dataplane/maxUnavailable'"],
  [{ global: { apiServer: { host: 'https://api.example.com' } } }, "at '/global/apiServer/host'"],
  [{ global: { image: { digest: 'latest' } } }, "at '/global/image/digest'"],
  [{ 'node-keeper': { image: { digest: 'sha256:1' } } }, "at '/node-keeper/image/digest'"],
  [{ 'cidr-allocator': { relayImage: { tag: 'a' } } }, "at '/cidr-allocator'"],
  [{ 'static-egress': { relayImage: { tag: 'a' } } }, "at '/static-egress'"],
  [{ 'l2-networks': { relayImage: { tag: 'a' } } }, "at '/l2-networks'"],
  [{ 'l2-networks': { caBundle: 'PEM' } }, "at '/l2-networks'"],
  [{ 'tailnet-registrar': { secretNames: ['A_B'] } }, "at '/tailnet-registrar/secretNames/0'"],
  [{ 'tailnet-registrar': { uninstall: { timeoutSeconds: 0 } } }, "at '/tailnet-registrar/uninstall/timeoutSeconds'"],
  [{ 'l2-networks': { uninstall: {} } }, "at '/l2-networks'"],
  [{ tailnet: { clusterCidrs: ['10.0.0.0'] } }, "at '/tailnet/clusterCidrs/0'"],
  [{ tailnet: { devices: { image: {} } } }, "at '/tailnet/devices'"],
  [{ 'status-aggregator': { maxClients: 0 } }, "at '/status-aggregator/maxClients'"],
  [{ 'status-aggregator': { replicas: 2 } }, 'status-aggregator.replicas: 2: must be 0 or 1'],
  [
    { 'status-aggregator': { autoscaling: { enabled: true } } },
    'status-aggregator.autoscaling.enabled: true: must be false',
  ],
  [{ 'status-aggregator': { redis: { url: 'redis://:secret@host' } } }, "at '/status-aggregator/redis/url'"],
  [{ 'status-aggregator': { redis: { url: 'http://host' } } }, "at '/status-aggregator/redis/url'"],
  [{ global: { host: { keys: 'wireguard' } } }, "at '/global/host/keys'"],
  [{ global: { apiServer: { port: 70_000 } } }, "at '/global/apiServer/port': maximum: got 70,000, want 65,535"],
])('%j is refused: %s', (values, message) => {
  expect(() => renderChart({ values })).toThrow(message);
});
