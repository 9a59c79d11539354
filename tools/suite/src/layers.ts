import { globSync } from 'node:fs';

/**
 * The test layers. vitest.config.ts makes its projects of this table and `tools/test` its tiers and budgets. The name of a spec file
 * decides its layer (`cni.kernel.spec.ts`), and the layer its tier: a spec is in exactly one.
 */

/** `ci`: run by every `tools/test`. `full`: added by `tools/test full`. `matrix`: labs of every kind, the last part of `full`. */
type Tier = 'ci' | 'full' | 'matrix';

export interface Layer {
  readonly name: string;
  readonly tier: Tier;
  /** The roles in the names of its spec files, before `.spec.ts`; none for unit specs. */
  readonly roles: string;
  /** Spec files at a time. More than processors where specs wait for timers most of the time. */
  readonly workers: number;
  /** What `tools/setup` prepares for it. */
  readonly needs: readonly ('base' | 'browser' | 'fuzz' | 'test' | 'vm' | 'conformance' | 'hosts')[];
  /** Wall time on a machine of reference (machine-speed.ts) with two processors and warm caches. */
  readonly budgetSeconds?: number;
  /** Its specs install packages of former versions: they keep the machine's network. */
  readonly onHostNetwork?: boolean;
  /**
   * A target of Nx (package.json): run anew only when a file that it depends on differs from when it last passed, in this checkout
   * or in any of this machine.
   */
  readonly cachedBy?: 'checkout' | 'machine' | undefined;
  /** Its specs use API servers in turn (libs/testing/src/api-server-pool.ts). */
  readonly borrowsApiServers?: boolean;
  /** Its specs bring up labs, of which a machine has one for tests. */
  readonly hasLabs?: boolean;
}

const [CI, NEEDS_TEST] = ['ci', ['test']] as const;

/** In the order in which they run: what fails soonest comes first. */
export const LAYERS: readonly Layer[] = [
  { name: 'unit', tier: CI, roles: '', workers: 3, needs: ['base'], budgetSeconds: 65, cachedBy: 'checkout' },
  { name: 'bpf', tier: CI, roles: '.bpf', workers: 2, needs: NEEDS_TEST, budgetSeconds: 5 },
  { name: 'fuzz', tier: CI, roles: '.fuzz', workers: 2, needs: ['fuzz'], budgetSeconds: 20 },
  { name: 'kernel', tier: CI, roles: '.kernel', workers: 5, needs: NEEDS_TEST, budgetSeconds: 140 },
  {
    name: 'kube',
    tier: CI,
    roles: '.kube',
    workers: 4,
    needs: NEEDS_TEST,
    budgetSeconds: 105,
    borrowsApiServers: true,
  },
  { name: 'browser', tier: CI, roles: '.browser', workers: 1, needs: ['browser'], budgetSeconds: 30 },
  { name: 'lab', tier: CI, roles: '.lab', workers: 1, needs: NEEDS_TEST, budgetSeconds: 80, hasLabs: true },
  { name: 'vm', tier: CI, roles: '.vm', workers: 2, needs: ['vm'], budgetSeconds: 158, cachedBy: 'machine' },
  { name: 'kernel-full', tier: 'full', roles: '.full.kernel', workers: 5, needs: NEEDS_TEST },
  { name: 'kube-full', tier: 'full', roles: '.full.kube', workers: 4, needs: NEEDS_TEST, borrowsApiServers: true },
  { name: 'lab-full', tier: 'full', roles: '.full.lab', workers: 1, needs: NEEDS_TEST, hasLabs: true },
  {
    ...{
      name: 'matrix',
      tier: 'matrix',
      roles: '.matrix',
      workers: 1,
      needs: ['vm', 'fuzz', 'conformance', 'hosts', 'browser'],
    },
    ...{ onHostNetwork: true, hasLabs: true },
  },
];

const ROOTS = '{apps,libs,tools,bpf}';
const suffixOf = ({ roles }: Layer): string => `${roles}.spec.ts`;

/** Globs of the spec files of a layer: a longer suffix (`.full.lab.spec.ts`) belongs to the layer that names all of it. */
export const globsOf = (layer: Layer): { readonly include: string[]; readonly exclude: string[] } => ({
  include: [`${ROOTS}/**/*${suffixOf(layer)}`],
  exclude: LAYERS.map(suffixOf)
    .filter((suffix) => suffix !== suffixOf(layer) && suffix.endsWith(suffixOf(layer)))
    .map((suffix) => `**/*${suffix}`),
});

const NOT_OURS = ['**/node_modules/**', '**/dist/**', '**/build/**'];

/** Spec files of a layer, from the top of the tree. */
export const specsOf = (root: string, layer: Layer): string[] => {
  const { include, exclude } = globsOf(layer);
  return globSync(include, { cwd: root, exclude: [...NOT_OURS, ...exclude] }).sort();
};

/** The layer of that name. @throws Error that names all layers */
export const layerNamed = (name: string): Layer => {
  const found = LAYERS.find((layer) => layer.name === name);
  if (!found)
    throw new Error(`"${name}" is not a layer: it must be one of ${LAYERS.map((layer) => layer.name).join(', ')}`);
  return found;
};

/** What is no vitest layer. Set-up takes that with warm caches; without them it may take as long as it has to. */
export const SET_UP_BUDGET_SECONDS = 10;
export const CHECK_BUDGET_SECONDS = 16;
export const CI_BUDGET_SECONDS = 720;
