/** Bundles apps into one ESM file each. Usage: bundle.ts APP... (tools/build calls it for those that are not up to date) */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { rolldown } from 'rolldown';

const root = resolve(import.meta.dirname, '..');

/** Parts of Nest that it loads only when they are installed; none of ours uses them. */
const optional = [/^@nestjs\/(websockets|microservices|platform-express)/, /^class-(validator|transformer)/];

const bundle = async (app: string): Promise<void> => {
  const folder = join(root, 'apps', app);
  const file = join(folder, 'dist/main.mjs');
  const built = await rolldown({
    input: join(folder, 'src/main.ts'),
    platform: 'node',
    tsconfig: join(root, 'tsconfig.json'),
    external: optional,
    resolve: { conditionNames: ['node', 'import'] },
    onLog: (level, log, print) => {
      if (level === 'warn' && log.code !== 'EVAL') print(level, log); // Nest's use of eval is its own
    },
  });
  // CommonJS packages inside ask for Node's own modules by require.
  const banner = "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";
  await built.write({ file, format: 'esm', codeSplitting: false, sourcemap: true, banner });
  console.log(`bundled ${app}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
};

for (const app of process.argv.slice(2)) await bundle(app);
