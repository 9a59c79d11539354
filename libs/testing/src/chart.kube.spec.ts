import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { type ApiServer, startApiServer } from './index.ts';
import {
  chartFolder,
  helmProgram,
  isKind,
  isWorkload,
  type Manifest,
  NAMESPACE,
  namespaceFile,
  RELEASE,
  renderChart,
  yamlOf,
} from './chart.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await startApiServer();
  api.kubectl('apply', '-f', namespaceFile);
});
afterAll(() => api?.stop());

interface Container {
  readonly name: string;
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly securityContext: {
    readonly privileged?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly capabilities: { readonly drop: readonly string[]; readonly add?: readonly string[] };
  };
}
interface Workload extends Manifest {
  readonly spec: {
    readonly replicas?: number;
    readonly updateStrategy?: { readonly type: string };
    readonly template: {
      readonly spec: {
        readonly hostNetwork?: boolean;
        readonly hostPID?: boolean;
        readonly automountServiceAccountToken?: boolean;
        readonly securityContext: { readonly runAsNonRoot?: boolean };
        readonly containers: readonly Container[];
        readonly initContainers?: readonly Container[];
      };
    };
  };
}

const workloads = (values: object = {}): Map<string, Workload> =>
  new Map(
    renderChart({ values })
      .filter((object) => object.kind === 'Deployment' || object.kind === 'DaemonSet')
      .map((object) => [object.metadata.name, object as Workload]),
  );
const podOf = (name: string, values?: object) => workloads(values).get(name)!.spec.template.spec;
const controllers = ['cidr-allocator', 'site-membership', 'gateway-health'];

const helm = (...args: string[]): string =>
  execFileSync(helmProgram(), args, {
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, KUBECONFIG: api.kubeconfig },
  });

const everything = {
  global: {
    image: { repository: 'r.example/unbounded', tag: 'v9', pullSecrets: ['pull'] },
    apiServer: { host: 'api.example.com', port: 443 },
  },
  'cidr-allocator': { extraArgs: ['--on-exhaustion=exit'], nodeSelector: { a: 'b' }, podAnnotations: { c: 'd' } },
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
  'node-dataplane': {
    maxUnavailable: '10%',
    seLinuxOptions: { type: 'spc_t' },
    cniPlugins: { image: 'r.example/cni', command: ['cp', '-r', '/plugins/.', '/host/opt/cni/bin'] },
  },
  'node-keeper': { seLinuxOptions: { type: 'spc_t' }, affinity: { nodeAffinity: {} } },
};

test.each([
  ['as it is', {}],
  ['with every value set', everything],
])('the API server takes every object, %s', (_, values) => {
  const objects = renderChart({ values });
  api.apply(yamlOf(objects.filter(isKind)), '--server-side');
  const answers = api.apply(yamlOf(objects), '--server-side', '--dry-run=server').trim().split('\n');
  expect(answers).toHaveLength(objects.length);
});

test('helm finds nothing to complain of', () => {
  expect(helm('lint', '--strict', chartFolder)).toContain('0 chart(s) failed');
});

test('no object names another namespace than the one it is installed in', () => {
  const objects = renderChart({ namespace: 'elsewhere' });
  expect(yamlOf(objects)).not.toContain(NAMESPACE);
  expect(yamlOf(objects)).toContain('system:serviceaccount:elsewhere:node-dataplane');
  const namespaced = objects.filter(
    ({ kind }) => isWorkload({ kind } as Manifest) || /^(Role|RoleBinding|ServiceAccount)$/.test(kind),
  );
  expect(new Set(namespaced.map(({ metadata }) => metadata.namespace))).toEqual(new Set(['elsewhere']));
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
    for (const name of controllers) {
      expect(podOf(name).securityContext.runAsNonRoot).toBe(true);
      expect(podOf(name).containers[0]!.securityContext.capabilities.add).toBeUndefined();
    }
  });

  test('the agents have these capabilities and no more', () => {
    const added = (name: string) => podOf(name).containers[0]!.securityContext.capabilities.add;
    expect(added('node-keeper')).toEqual(['NET_ADMIN']);
    expect(added('node-dataplane')).toEqual(['NET_ADMIN', 'NET_RAW', 'BPF', 'PERFMON', 'SYS_ADMIN']);
  });

  test('the keeper has no token, and is replaced only when somebody deletes it', () => {
    expect(podOf('node-keeper').automountServiceAccountToken).toBe(false);
    expect(workloads().get('node-keeper')!.spec.updateStrategy).toEqual({ type: 'OnDelete' });
  });

  test('nobody is given a role that is not of this chart', () => {
    const objects = renderChart() as (Manifest & { roleRef?: { kind: string; name: string }; rules?: object })[];
    const roles = objects.filter(({ rules }) => rules).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    for (const { roleRef } of objects.filter((object) => object.roleRef))
      expect(roles).toContain(`${roleRef!.kind} ${roleRef!.name}`);
    expect(yamlOf(objects.filter(({ rules }) => rules))).not.toMatch(/['"]\*['"]/);
  });
});

test('every program runs on the hosts’ network and reaches the API server by the address that the hosts know', () => {
  for (const [name, { spec }] of workloads({ global: { apiServer: { host: 'fd00::1', port: 8443 } } })) {
    const { hostNetwork, containers } = spec.template.spec;
    expect(hostNetwork, name).toBe(true);
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
  const budgets = renderChart({ values: { 'gateway-health': { replicas: 1 } } }).filter(
    ({ kind }) => kind === 'PodDisruptionBudget',
  );
  expect(budgets.map(({ metadata }) => metadata.name).sort()).toEqual(['cidr-allocator', 'site-membership']);
});

test('cleaning up runs once on each node, and what stays has no right at all', () => {
  const { initContainers, containers } = podOf('node-dataplane', { 'node-dataplane': { cleanup: true } });
  expect(initContainers).toMatchObject([{ name: 'cleanup', args: [expect.stringContaining('main.mjs'), 'cleanup'] }]);
  expect(containers[0]!.securityContext.capabilities).toEqual({ drop: ['ALL'] });
});

test('a part can be left out', () => {
  const objects = renderChart({ values: { 'node-keeper': { enabled: false }, crds: { enabled: false } } });
  expect(objects.filter((object) => isKind(object) || object.metadata.name === 'node-keeper')).toEqual([]);
});

test.each([
  [{ 'cidr-allocator': { replica: 3 } }, "at '/cidr-allocator': additional properties 'replica' not allowed"],
  [{ 'cidr-alocator': { replicas: 3 } }, "additional properties 'cidr-alocator' not allowed"],
  [{ 'gateway-health': { logLevel: 'loud' } }, "value must be one of 'trace', 'debug', 'info', 'warn', 'error'"],
  [{ 'node-dataplane': { maxUnavailable: 'all' } }, "at '/node-dataplane/maxUnavailable'"],
  [{ global: { apiServer: { host: 'https://api.example.com' } } }, "at '/global/apiServer/host'"],
  [{ global: { apiServer: { port: 70_000 } } }, "at '/global/apiServer/port': maximum: got 70,000, want 65,535"],
])('%j is refused: %s', (values, message) => {
  expect(() => renderChart({ values })).toThrow(message);
});

test('an upgrade brings new kinds along; an uninstall takes everything but the kinds', { timeout: 120_000 }, () => {
  const where = ['--namespace', NAMESPACE];
  const kinds = (): string[] => api.kubectl('get', 'crd', '-o', 'name').trim().split('\n');
  api.kubectl('delete', 'crd', '--all');
  helm('install', RELEASE, chartFolder, ...where);
  api.kubectl('delete', 'crd', 'gatewaypoolpeerings.net.unbounded-cloud.io');
  helm('upgrade', RELEASE, chartFolder, ...where);
  expect(kinds()).toHaveLength(readdirSync(`${chartFolder}/charts/crds/files`).length);
  helm('uninstall', RELEASE, ...where);
  expect(kinds()).toHaveLength(8);
  const left = api.kubectl('get', 'clusterrole,clusterrolebinding,validatingadmissionpolicy', '-o', 'name');
  expect(left).not.toContain('unbounded');
  expect(api.kubectl('get', 'all,serviceaccount,role,secret', ...where, '-o', 'name')).toBe('');
});
