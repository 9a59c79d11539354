import { defineConfig } from 'vitest/config';

/**
 * One project per test layer (see CONTRIBUTING.md): the file name says in which layer a test runs, so that
 * `tools/test unit` needs no privileges and the others get root, a kernel or an API server.
 */
const layers = {
  unit: 'spec',
  bpf: 'bpf.spec',
  kernel: 'kernel.spec',
  kube: 'kube.spec',
  fuzz: 'fuzz.spec',
  vm: 'vm.spec',
  lab: 'lab.spec',
  matrix: 'matrix.spec',
} as const;
const roots = '{apps,libs,tools,bpf}';
const privileged = Object.values(layers).filter((suffix) => suffix !== 'spec');

export default defineConfig({
  test: {
    projects: Object.entries(layers).map(([name, suffix]) => ({
      test: {
        name,
        include: [`${roots}/**/*.${suffix}.ts`],
        exclude: [
          '**/node_modules/**',
          '**/dist/**',
          ...(name === 'unit' ? privileged.map((other) => `**/*.${other}.ts`) : []),
        ],
        pool: 'forks',
        maxWorkers: 2,
        // Longer than `until` waits, so that a failure says what did not happen.
        testTimeout: name === 'unit' ? 20_000 : 60_000,
        hookTimeout: name === 'unit' ? 10_000 : 120_000,
        // An emulated machine keeps one processor busy, whatever it has itself.
        fileParallelism: name === 'unit' || name === 'kernel' || name === 'vm',
      },
    })),
  },
});
