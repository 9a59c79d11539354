import { globSync } from 'node:fs';

/**
 * The test layers. vitest.config.ts makes its projects of this table and `tools/test` its tiers and budgets. The name of a spec file
 * decides its project (`cni.kernel.spec.ts`), the project its layer, and the layer its tier: a spec is in exactly one.
 */

/** `ci`: run by every `tools/test`. `full`: added by `tools/test full`. `matrix`: labs of every kind, the last part of `full`. */
type Tier = 'ci' | 'full' | 'matrix';

/** A project of vitest.config.ts. */
export interface SpecProject {
  readonly name: string;
  /** The roles in the name of a spec file, without `.spec.ts`; none for unit specs. */
  readonly roles: string;
  /** Spec files at a time. More than processors where specs wait for timers most of the time. */
  readonly workers: number;
}

export interface Layer {
  readonly name: string;
  readonly tier: Tier;
  readonly projects: readonly SpecProject[];
  /** What `tools/setup` prepares for it. */
  readonly needs: readonly ('base' | 'fuzz' | 'test' | 'vm' | 'conformance')[];
  /** Wall time on a machine of reference (machine-speed.ts) with two processors and warm caches. */
  readonly budgetSeconds?: number;
  /** Its specs install packages of former versions: they keep the machine's network. */
  readonly onHostNetwork?: boolean;
  /**
   * A target of Nx (package.json): run anew only when a file that it depends on differs from when it last passed, in this checkout
   * or in any of this machine.
   */
  readonly cachedBy?: 'checkout' | 'machine' | undefined;
  /** Its specs bring up labs, of which a machine has one for tests. */
  readonly hasLabs?: boolean;
}

const project = (name: string, roles: string, workers: number): SpecProject => ({ name, roles, workers });

/** In the order in which they run: what fails soonest comes first. */
export const LAYERS: readonly Layer[] = [
  {
    name: 'unit',
    tier: 'ci',
    needs: ['base'],
    budgetSeconds: 65,
    cachedBy: 'checkout',
    projects: [project('unit', '', 2)],
  },
  { name: 'bpf', tier: 'ci', needs: ['test'], budgetSeconds: 10, projects: [project('bpf', '.bpf', 2)] },
  { name: 'fuzz', tier: 'ci', needs: ['fuzz'], budgetSeconds: 45, projects: [project('fuzz', '.fuzz', 1)] },
  {
    name: 'kernel',
    tier: 'ci',
    needs: ['test'],
    budgetSeconds: 210,
    projects: [project('kernel', '.kernel', 4)],
  },
  { name: 'kube', tier: 'ci', needs: ['test'], budgetSeconds: 100, projects: [project('kube', '.kube', 3)] },
  {
    name: 'lab',
    tier: 'ci',
    needs: ['test'],
    budgetSeconds: 115,
    hasLabs: true,
    projects: [project('lab', '.lab', 1)],
  },
  {
    name: 'vm',
    tier: 'ci',
    needs: ['vm'],
    budgetSeconds: 140,
    cachedBy: 'machine',
    projects: [project('vm', '.vm', 2)],
  },
  { name: 'lab-full', tier: 'full', needs: ['test'], hasLabs: true, projects: [project('lab-full', '.full.lab', 1)] },
  {
    name: 'matrix',
    tier: 'matrix',
    needs: ['vm', 'fuzz', 'conformance'],
    onHostNetwork: true,
    hasLabs: true,
    projects: [project('matrix', '.matrix', 1)],
  },
];

export const PROJECTS: readonly SpecProject[] = LAYERS.flatMap(({ projects }) => projects);

const ROOTS = '{apps,libs,tools,bpf}';
const suffixOf = ({ roles }: SpecProject): string => `${roles}.spec.ts`;

/** Globs of the spec files of a project: a longer suffix (`.full.lab.spec.ts`) belongs to the project that names all of it. */
export const globsOf = (of: SpecProject): { readonly include: string[]; readonly exclude: string[] } => ({
  include: [`${ROOTS}/**/*${suffixOf(of)}`],
  exclude: PROJECTS.map(suffixOf)
    .filter((suffix) => suffix !== suffixOf(of) && suffix.endsWith(suffixOf(of)))
    .map((suffix) => `**/*${suffix}`),
});

const NOT_OURS = ['**/node_modules/**', '**/dist/**', '**/build/**'];

/** Spec files of projects in some folders, from the top of the tree. */
export const specsIn = (root: string, projects: readonly SpecProject[], folders: readonly string[]): string[] =>
  projects
    .flatMap((of) => {
      const { include, exclude } = globsOf(of);
      return globSync(include, { cwd: root, exclude: [...NOT_OURS, ...exclude] });
    })
    .filter((file) => folders.some((folder) => file.startsWith(`${folder}/`)))
    .sort();

/** The layer of that name. @throws Error that names all layers */
export const layerNamed = (name: string): Layer => {
  const found = LAYERS.find((layer) => layer.name === name);
  if (!found)
    throw new Error(`"${name}" is not a layer: it must be one of ${LAYERS.map((layer) => layer.name).join(', ')}`);
  return found;
};

/** What is no vitest layer and has a budget of its own. */
export const SET_UP_BUDGET_SECONDS = 10;
export const CHECK_BUDGET_SECONDS = 25;
export const CI_BUDGET_SECONDS = 720;
