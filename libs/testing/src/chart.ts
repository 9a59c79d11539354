import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parse, stringify } from 'yaml';

import { COMMAND_MEMORY } from './go-memory.ts';

/** The Helm chart of the checkout, as the objects that it stands for. */

export const chartFolder = fileURLToPath(new URL('../../../deploy/chart', import.meta.url));
export const namespaceFile = fileURLToPath(new URL('../../../deploy/namespace.yaml', import.meta.url));

/** The namespace that namespace.yaml makes. */
export const NAMESPACE = 'unbounded-system';
export const RELEASE = 'unbounded';

/** Path of the helm program. @throws Error that says how to get it */
export const helmProgram = (): string => {
  const assets =
    process.env['UNBOUNDED_ASSETS'] ?? process.env['UNBOUNDED_CACHE'] ?? join(homedir(), '.cache/unbounded');
  const program = join(assets, 'bin/helm');
  if (!existsSync(program)) throw new Error(`${program} is missing: run tools/assets/build helm`);
  return program;
};

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export interface RenderOptions {
  /** As in a values file. */
  readonly values?: object;
  readonly namespace?: string;
}

/** Runs helm with values on its standard input; its output. @throws Error with helm's message */
export const runHelm = (args: readonly string[], values: object): string =>
  execFileSync(helmProgram(), [...args, '--values', '-'], {
    encoding: 'utf8',
    input: JSON.stringify(values),
    stdio: 'pipe',
    maxBuffer: 1 << 27,
    env: { ...process.env, ...COMMAND_MEMORY },
  });

/** What `helm template` prints for a chart: that of the checkout, or another folder or package. */
export const renderText = (
  { values = {}, namespace = NAMESPACE }: RenderOptions = {},
  chart: string = chartFolder,
): string => runHelm(['template', RELEASE, chart, '--namespace', namespace], values);

/** Parsing takes longer than helm does, and most documents are the same whatever the values are. */
const parsed = new Map<string, Manifest | null>();
const parseOnce = (document: string): Manifest | null => {
  const known = parsed.get(document);
  if (known !== undefined) return known;
  const object = (parse(document) ?? null) as Manifest | null;
  parsed.set(document, object);
  return object;
};

/** The objects of an installation. @throws Error with helm's message, for example of a value that the schema refuses */
export const renderChart = (options: RenderOptions = {}): Manifest[] =>
  renderText(options)
    .split(/^---$/m)
    .map(parseOnce)
    .filter((object) => object !== null);

const rendered = new Map<string, readonly Manifest[]>();
/** The same, by one start of helm for the same options. */
export const renderChartOnce = (options: RenderOptions = {}): readonly Manifest[] => {
  const key = JSON.stringify(options);
  const objects = rendered.get(key) ?? renderChart(options);
  rendered.set(key, objects);
  return objects;
};

const WORKLOADS = new Set(['Deployment', 'DaemonSet', 'Job', 'PodDisruptionBudget', 'ResourceQuota']);

export const isWorkload = ({ kind }: Manifest): boolean => WORKLOADS.has(kind);
export const isKind = ({ kind }: Manifest): boolean => kind === 'CustomResourceDefinition';

interface Role extends Manifest {
  readonly metadata: Manifest['metadata'] & { readonly labels?: Readonly<Record<string, string>> };
  readonly rules?: readonly object[];
  readonly aggregationRule?: {
    readonly clusterRoleSelectors: readonly { readonly matchLabels: Readonly<Record<string, string>> }[];
  };
}
/** As kube-controller-manager does, which runs beside few of the API servers of tests: chart-aggregation.kube.spec.ts compares. */
const aggregated = (objects: readonly Role[]): Manifest[] =>
  objects.map((role) => {
    const selectors = role.aggregationRule?.clusterRoleSelectors;
    if (!selectors) return role;
    const isSelected = ({ metadata: { labels = {} } }: Role): boolean =>
      selectors.some(({ matchLabels }) => Object.entries(matchLabels).every(([key, value]) => labels[key] === value));
    return { ...role, rules: objects.filter(isSelected).flatMap(({ rules = [] }) => rules) };
  });

/** Accounts, roles and admission policies: for programs that run as processes instead of pods. */
export const accessRules = (values: object = {}): Manifest[] =>
  aggregated(renderChartOnce({ values })).filter((object) => !isWorkload(object) && !isKind(object));

/** For `kubectl apply -f`. */
export const yamlOf = (objects: readonly object[]): string => objects.map((object) => stringify(object)).join('---\n');
