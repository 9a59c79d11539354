import { describe, expect, test } from 'vitest';

import { only, parts } from './chart-leaves.ts';
import { type Manifest, renderChart } from './chart.ts';
import { DIGEST } from './chart-values.ts';

/** The values that every app has for whoever operates it. */

interface Container {
  readonly image: string;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}
interface Workload extends Manifest {
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly strategy?: object;
    readonly updateStrategy?: object;
    readonly template: {
      readonly metadata: {
        readonly labels: Readonly<Record<string, string>>;
        readonly annotations?: Readonly<Record<string, string>>;
      };
      readonly spec: { readonly containers: readonly Container[] };
    };
  };
}

/** Those that have pods. */
const apps = parts.filter((name) => name !== 'crds' && name !== 'monitoring');
const NEEDED = { relay: 'gateway-health', tailnet: 'tailnet-registrar' } as Readonly<Record<string, string>>;
const withApp = (name: string, values: object, global: object = {}): Manifest[] =>
  renderChart({
    values: {
      ...only(name),
      ...(NEEDED[name] === undefined ? {} : { [NEEDED[name]]: { enabled: true } }),
      [name]: { enabled: true, ...values },
      global,
    },
  });
const isWorkload = (object: Manifest): object is Workload =>
  object.kind === 'Deployment' || object.kind === 'DaemonSet';
const workload = (name: string, values: object = {}, global: object = {}): Workload =>
  withApp(name, values, global)
    .filter(isWorkload)
    .find(({ metadata }) => metadata.name === name)!;
const containerOf = ({ spec }: Workload): Container => spec.template.spec.containers[0]!;

describe.each(apps)('%s', (name) => {
  test('has labels, annotations and variables of its own, beside those of the chart', () => {
    const before = workload(name);
    const values = {
      podLabels: { team: 'net' },
      podAnnotations: { note: 'x' },
      extraEnv: [{ name: 'NODE_DEBUG', value: 'net' }],
    };
    const after = workload(name, values);
    expect(after.spec.selector).toEqual(before.spec.selector);
    expect(after.spec.template.metadata.labels).toEqual({ ...before.spec.template.metadata.labels, team: 'net' });
    expect(after.spec.template.metadata.annotations).toEqual({ note: 'x' });
    expect(containerOf(after).env).toEqual([...(containerOf(before).env ?? []), ...values.extraEnv]);
  });

  test('takes no label by which its pods are selected', () => {
    for (const label of ['app.kubernetes.io/name', 'app.kubernetes.io/instance'])
      expect(() => workload(name, { podLabels: { [label]: 'other' } })).toThrow(
        `${name}.podLabels: ${label}: must be another label`,
      );
  });

  test('takes no variable that the chart sets', () => {
    for (const variable of ['NODE_NAME', 'POD_NAME', 'POD_NAMESPACE', 'HOST_IP', 'KUBERNETES_SERVICE_HOST'])
      expect(() => workload(name, { extraEnv: [{ name: variable, value: 'x' }] })).toThrow(
        `${name}.extraEnv: ${variable}: must be another variable`,
      );
  });

  test('has an account with annotations', () => {
    const accounts = withApp(name, { serviceAccount: { annotations: { 'cloud.example/role': 'r' } } }).filter(
      ({ kind, metadata }) => kind === 'ServiceAccount' && metadata.name === name,
    );
    expect(accounts).toMatchObject([{ metadata: { annotations: { 'cloud.example/role': 'r' } } }]);
  });

  test.each<[string, object, object, string]>([
    ['of all', { registry: 'm.example:5000' }, {}, 'm.example:5000/unbounded:0.1.0'],
    ['of all, with a path', { registry: 'm.example/p', repository: 'org/u' }, {}, 'm.example/p/org/u:0.1.0'],
    ['of its own', { registry: 'm.example' }, { registry: 'own.example' }, 'own.example/unbounded:0.1.0'],
    ['of all, by digest', { registry: 'm.example' }, { digest: DIGEST }, `m.example/unbounded@${DIGEST}`],
  ])('has its image from a registry %s', (_, image, own, expected) => {
    expect(containerOf(workload(name, { image: own }, { image })).image).toBe(expected);
  });
});

describe('traces', () => {
  const endpoint = 'http://otel.example:4318';
  const global = { tracing: { endpoint } };
  const variable = 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const endpointsOf = (object: Workload) => (containerOf(object).env ?? []).filter(({ name }) => name === variable);

  test('go where the values say, of the programs that can send them', () => {
    const sending = apps.filter((name) => endpointsOf(workload(name, {}, global)).length === 1);
    expect(sending).toEqual(apps.filter((name) => name !== 'node-keeper'));
    const devices = withApp('tailnet', {}, global).filter(isWorkload);
    expect(endpointsOf(devices.find(({ metadata }) => metadata.name === 'tailnet-devices')!)).toEqual([]);
    expect(apps.flatMap((name) => endpointsOf(workload(name)))).toEqual([]);
  });

  test('of one program go elsewhere by its own variable', () => {
    const own = [{ name: variable, value: 'http://own.example:4318' }];
    expect(endpointsOf(workload('cidr-allocator', { extraEnv: own }, global))).toEqual(own);
  });
});

describe('an update', () => {
  const strategyOf = (name: string, updateStrategy: object, values: object = {}) => {
    const { strategy, updateStrategy: ofNodes } = workload(name, { updateStrategy, ...values }).spec;
    return strategy ?? ofNodes;
  };

  test('of a Deployment is as the values say, without what Kubernetes takes with RollingUpdate alone', () => {
    expect(strategyOf('cidr-allocator', { type: 'Recreate' })).toEqual({ type: 'Recreate' });
    expect(strategyOf('cidr-allocator', { rollingUpdate: { maxSurge: 1 } })).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 1, maxUnavailable: 1 },
    });
    expect(strategyOf('relay', { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } })).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
    });
  });

  test('of agents goes by nodes, or waits for somebody', () => {
    for (const name of ['node-dataplane', 'tailnet']) {
      expect(strategyOf(name, { type: 'OnDelete' })).toEqual({ type: 'OnDelete' });
      expect(strategyOf(name, {}, { maxUnavailable: '10%' })).toEqual({
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: '10%' },
      });
    }
    expect(strategyOf('node-keeper', {})).toEqual({ type: 'OnDelete' });
    expect(strategyOf('node-keeper', { type: 'RollingUpdate' })).toEqual({
      type: 'RollingUpdate',
      rollingUpdate: { maxUnavailable: 1 },
    });
  });

  test('of an installation from before, which has no such value, is as it was', () => {
    const without = (name: string) => workload(name, { updateStrategy: null }).spec;
    for (const name of apps) expect(without(name), name).toEqual(workload(name).spec);
  });

  test.each([
    ['relay', { type: 'Recreate' }, "at '/relay/updateStrategy/type': value must be 'RollingUpdate'"],
    ['cidr-allocator', { rollingUpdate: { maxUnavailable: 0 } }, "at '/cidr-allocator/updateStrategy/rollingUpdate"],
    ['node-dataplane', { rollingUpdate: { maxSurge: 1 } }, "additional properties 'rollingUpdate' not allowed"],
    ['tailnet', { type: 'Recreate' }, "at '/tailnet/updateStrategy/type'"],
    ['status-aggregator', { type: 'OnDelete' }, "at '/status-aggregator/updateStrategy/type'"],
  ])('of %s that would do harm is refused: %j', (name, updateStrategy, message) => {
    expect(() => workload(name, { updateStrategy })).toThrow(message);
  });
});

test.each<[string, object, object, string]>([
  ['node-keeper', { podLabels: { a: 'b c' } }, {}, "at '/node-keeper/podLabels/a'"],
  ['static-egress', { extraEnv: [{ value: 'x' }] }, {}, "at '/static-egress/extraEnv/0': missing property 'name'"],
  ['relay', { extraEnv: [{ name: 'A', from: 'x' }] }, {}, "additional properties 'from' not allowed"],
  ['tailnet', { serviceAccount: { name: 'x' } }, {}, "additional properties 'name' not allowed"],
  ['node-dataplane', { replicas: 2 }, {}, "additional properties 'replicas' not allowed"],
  ['cidr-allocator', { autoscaling: { enabled: true } }, {}, "additional properties 'autoscaling' not allowed"],
  ['cidr-allocator', { library: { a: 1 } }, {}, "at '/cidr-allocator/library': additional properties 'a' not allowed"],
  ['l2-networks', {}, { image: { registry: 'https://m.example' } }, "at '/global/image/registry'"],
  ['l2-networks', {}, { tracing: { endpoint: 'otel:4318' } }, "at '/global/tracing/endpoint'"],
])('a wrong value of %s is refused: %j %j', (name, values, global, message) => {
  expect(() => workload(name, values, global)).toThrow(message);
});
