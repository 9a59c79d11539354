import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parseAllDocuments, stringify } from 'yaml';

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

/** The objects of an installation. @throws Error with helm's message, for example of a value that the schema refuses */
export const renderChart = ({ values = {}, namespace = NAMESPACE }: RenderOptions = {}): Manifest[] => {
  const args = ['template', RELEASE, chartFolder, '--namespace', namespace, '--values', '-'];
  const text = execFileSync(helmProgram(), args, { encoding: 'utf8', input: JSON.stringify(values), stdio: 'pipe' });
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((object) => object !== null);
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
  aggregated(renderChart({ values })).filter((object) => !isWorkload(object) && !isKind(object));

/** For `kubectl apply -f`. */
export const yamlOf = (objects: readonly object[]): string => objects.map((object) => stringify(object)).join('---\n');
