import { beforeAll, describe, expect, test } from 'vitest';

import { merged, nested, only, parts } from './chart-leaves.ts';
import { type Manifest, renderChart, renderChartOnce } from './chart.ts';
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
/** The app alone with what it needs. @throws Error with helm's message of a value that is refused */
const alone = (name: string, values: object): Manifest[] =>
  renderChart({
    values: merged(only(name), NEEDED[name] === undefined ? {} : only(NEEDED[name]), {
      [name]: { ...values, enabled: true },
    }),
  });
/** All apps, each with its values. */
const together = (valuesOf: (name: string) => object, global: object = {}): readonly Manifest[] => {
  const all = Object.fromEntries(apps.map((name) => [name, { enabled: true, ...valuesOf(name) }]));
  return renderChartOnce({ values: { crds: { enabled: false }, ...all, global } });
};
const isWorkload = (object: Manifest): object is Workload =>
  object.kind === 'Deployment' || object.kind === 'DaemonSet';
/** Of an app, in a rendering in which all apps have these values. */
const workload = (name: string, values: object = {}, global: object = {}): Workload =>
  together(() => values, global)
    .filter(isWorkload)
    .find(({ metadata }) => metadata.name === name)!;
const containerOf = ({ spec }: Workload): Container => spec.template.spec.containers[0]!;

const inTurn =
  (choices: readonly string[]) =>
  (name: string): string =>
    choices[apps.indexOf(name) % choices.length]!;
const labelFor = inTurn(['app.kubernetes.io/name', 'app.kubernetes.io/instance']);
const variableFor = inTurn(['NODE_NAME', 'POD_NAME', 'POD_NAMESPACE', 'HOST_IP', 'KUBERNETES_SERVICE_HOST']);

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

  // Each app has another one of them: one start of helm shows one refusal.
  test(`takes no label by which its pods are selected: ${labelFor(name)}`, () => {
    expect(() => alone(name, { podLabels: { [labelFor(name)]: 'other' } })).toThrow(
      `${name}.podLabels: ${labelFor(name)}: must be another label`,
    );
  });

  test(`takes no variable that the chart sets: ${variableFor(name)}`, () => {
    expect(() => alone(name, { extraEnv: [{ name: variableFor(name), value: 'x' }] })).toThrow(
      `${name}.extraEnv: ${variableFor(name)}: must be another variable`,
    );
  });

  test('has an account with annotations', () => {
    const accounts = together(() => ({ serviceAccount: { annotations: { 'cloud.example/role': 'r' } } })).filter(
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
    const devices = together(() => ({}), global).filter(isWorkload);
    expect(endpointsOf(devices.find(({ metadata }) => metadata.name === 'tailnet-devices')!)).toEqual([]);
    expect(apps.flatMap((name) => endpointsOf(workload(name)))).toEqual([]);
  });

  test('of one program go elsewhere by its own variable', () => {
    const own = [{ name: variable, value: 'http://own.example:4318' }];
    expect(endpointsOf(workload('cidr-allocator', { extraEnv: own }, global))).toEqual(own);
  });
});

describe('an update', () => {
  const strategiesOf = (values: Readonly<Record<string, object>>): Readonly<Record<string, object | undefined>> =>
    Object.fromEntries(
      together((name) => values[name] ?? {})
        .filter(isWorkload)
        .map(({ metadata, spec }) => [metadata.name, spec.strategy ?? spec.updateStrategy]),
    );
  const bySurge = (maxSurge: number) => ({
    type: 'RollingUpdate',
    rollingUpdate: { maxSurge, maxUnavailable: 1 },
  });

  test('of a Deployment is as the values say, without what Kubernetes takes with RollingUpdate alone', () => {
    const found = strategiesOf({
      'cidr-allocator': { updateStrategy: { type: 'Recreate' } },
      'site-membership': { updateStrategy: { rollingUpdate: { maxSurge: 1 } } },
      relay: { updateStrategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
    });
    expect(found['cidr-allocator']).toEqual({ type: 'Recreate' });
    expect(found['site-membership']).toEqual(bySurge(1));
    expect(found['relay']).toEqual(bySurge(0));
  });

  test('of agents goes by nodes, or waits for somebody', () => {
    const waiting = strategiesOf({
      'node-dataplane': { updateStrategy: { type: 'OnDelete' } },
      tailnet: { updateStrategy: { type: 'OnDelete' } },
    });
    const going = strategiesOf({
      'node-dataplane': { updateStrategy: {}, maxUnavailable: '10%' },
      tailnet: { updateStrategy: {}, maxUnavailable: '10%' },
      'node-keeper': { updateStrategy: { type: 'RollingUpdate' } },
    });
    for (const name of ['node-dataplane', 'tailnet']) {
      expect(waiting[name]).toEqual({ type: 'OnDelete' });
      expect(going[name]).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '10%' } });
    }
    expect(waiting['node-keeper']).toEqual({ type: 'OnDelete' });
    expect(going['node-keeper']).toEqual({ type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } });
  });

  test('of an installation from before, which has no such value, is as it was', () => {
    const without = (name: string) => workload(name, { updateStrategy: null }).spec;
    for (const name of apps) expect(without(name), name).toEqual(workload(name).spec);
  });
});

describe('a wrong value is refused', () => {
  const rows: readonly [string, unknown, string][] = [
    // Updates that would do harm.
    ['relay', { updateStrategy: { type: 'Recreate' } }, "/updateStrategy/type': value must be 'RollingUpdate'"],
    [
      ...(['cidr-allocator', { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } }] as const),
      "/updateStrategy/rollingUpdate/maxUnavailable': minimum: got 0, want 1",
    ],
    [
      ...(['node-dataplane', { updateStrategy: { rollingUpdate: { maxSurge: 1 } } }] as const),
      "/updateStrategy': additional properties 'rollingUpdate' not allowed",
    ],
    ['tailnet', { updateStrategy: { type: 'Recreate' } }, "/updateStrategy/type': value must be one of"],
    ['status-aggregator', { updateStrategy: { type: 'OnDelete' } }, "/updateStrategy/type': value must be one of"],
    // Others.
    ['node-keeper', { podLabels: { a: 'b c' } }, "/podLabels/a': 'b c' does not match pattern"],
    ['static-egress', { extraEnv: [{ value: 'x' }] }, "/extraEnv/0': missing property 'name'"],
    ['relay', { extraEnv: [{ name: 'A', from: 'x' }] }, "/extraEnv/0': additional properties 'from' not allowed"],
    ['tailnet', { serviceAccount: { name: 'x' } }, "/serviceAccount': additional properties 'name' not allowed"],
    ['node-dataplane', { replicas: 2 }, "': additional properties 'replicas' not allowed"],
    ['cidr-allocator', { autoscaling: { enabled: true } }, "': additional properties 'autoscaling' not allowed"],
    ['cidr-allocator', { library: { a: 1 } }, "/library': additional properties 'a' not allowed"],
    ['global', { image: { registry: 'https://m.example' } }, "/image/registry': 'https://m.example' does not match"],
    ['global', { tracing: { endpoint: 'otel:4318' } }, "/tracing/endpoint': 'otel:4318' does not match pattern"],
  ];
  /** Of all of them together: helm names each value that the schema refuses. */
  let message = '';
  beforeAll(() => {
    try {
      renderChart({ values: merged(...rows.map(([name, values]) => nested([name], values))) });
    } catch (error) {
      message = (error as Error).message;
    }
  });

  test.each(rows)('of %s: %j', (name, _, expected) => {
    expect(message).toContain(`at '/${name}${expected}`);
  });
});
