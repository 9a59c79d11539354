import { existsSync, readdirSync, readFileSync } from 'node:fs';
import nx from '@nx/eslint-plugin';
import * as parser from '@typescript-eslint/parser';

/**
 * The layer rule (docs/adr/0002): apps import libs, never apps; pure code imports no effects.
 * A tag stands in the `nx.tags` of each package.json. tools/repo/src/boundaries.spec.ts plants violations and
 * expects this file to catch them.
 */
const libLayers = ['type:model', 'type:core', 'type:kit', 'type:shell', 'type:host'];
const effects = ['@nestjs/*', '@kubernetes/*', 'rxjs', 'pino', 'prom-client', '@opentelemetry/*'];

const depConstraints = [
  { sourceTag: 'type:model', onlyDependOnLibsWithTags: ['type:model'], bannedExternalImports: effects },
  { sourceTag: 'type:core', onlyDependOnLibsWithTags: ['type:core', 'type:model'], bannedExternalImports: effects },
  {
    sourceTag: 'type:kit',
    onlyDependOnLibsWithTags: ['type:kit', 'type:core', 'type:model'],
    bannedExternalImports: ['@nestjs/*', '@kubernetes/*'],
  },
  {
    sourceTag: 'type:shell',
    onlyDependOnLibsWithTags: ['type:shell', 'type:kit', 'type:core', 'type:model'],
    bannedExternalImports: ['@nestjs/*'],
  },
  {
    sourceTag: 'type:host',
    onlyDependOnLibsWithTags: ['type:host', 'type:shell', 'type:kit', 'type:core', 'type:model'],
  },
  { sourceTag: 'type:testing', onlyDependOnLibsWithTags: [...libLayers, 'type:testing'] },
  { sourceTag: 'type:app', onlyDependOnLibsWithTags: libLayers },
  { sourceTag: 'type:tool', onlyDependOnLibsWithTags: [...libLayers, 'type:testing', 'type:tool'] },
];

/** Apps are no libraries: Nx does not resolve them by name, so their names are banned here. */
const nameOf = (app) => {
  const file = new URL(`apps/${app}/package.json`, import.meta.url);
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).name : `@unbounded/${app}`;
};
const apps = readdirSync(new URL('apps', import.meta.url)).map((app) => ({
  regex: `^${nameOf(app)}($|/)|/apps/${app}(/|$)`,
  message: 'apps meet through Kubernetes objects, sockets and files: move what two apps share into a lib',
}));
const node = {
  regex: '^node:',
  message: 'pure code has no I/O and no clock: take what you need as a value or a function',
};

export default [
  { ignores: ['**/dist/**', '**/build/**', '**/node_modules/**'] },
  {
    files: ['{apps,libs,tools}/**/*.{ts,tsx}'],
    ignores: ['**/*.spec.ts', '**/*.fuzz.ts', '**/*.scenario.ts', '**/*.testdata.ts'],
    languageOptions: { parser },
    linterOptions: { reportUnusedDisableDirectives: 'off' },
    plugins: { '@nx': nx },
    rules: {
      // What a package's own "imports" name (#…) is within the package.
      '@nx/enforce-module-boundaries': [
        'error',
        {
          enforceBuildableLibDependency: true,
          allow: ['^#'],
          depConstraints,
          // An entry of a library that is loaded late (@unbounded/kube/open-cluster) does not make the others late.
          checkDynamicDependenciesExceptions: ['@unbounded/*'],
        },
      ],
      'no-restricted-imports': ['error', { patterns: apps }],
    },
  },
  {
    files: [
      'libs/{ip,crds,label-selector,egress,l2,tailnet,membership,topology,health,bpf-maps,relay-protocol}/src/**/*.ts',
      '{apps,libs}/*/src/**/*.{plan,diff,codec}.ts',
    ],
    ignores: ['**/*.spec.ts', '**/*.fuzz.ts'],
    languageOptions: { parser },
    rules: { 'no-restricted-imports': ['error', { patterns: [...apps, node] }] },
  },
];
