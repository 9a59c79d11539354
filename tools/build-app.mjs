// Bundles one app into apps/<app>/dist/main.mjs: one file without node_modules. Usage: tools/node tools/build-app.mjs APP
import { existsSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { rolldown } from 'rolldown';

const [app] = process.argv.slice(2);
const root = fileURLToPath(new URL(`../apps/${app}/`, import.meta.url));
if (!app || !existsSync(`${root}src/main.ts`)) {
  console.error(
    `usage: tools/node tools/build-app.mjs APP, where apps/APP/src/main.ts exists (got ${app ?? 'nothing'})`,
  );
  process.exit(2);
}

// Loaded by Nest only when an app uses them; none of ours does.
const optionalNestPackages = /^@nestjs\/(microservices|websockets|platform-.*)/;
const nativeAddons = /\.node$/;
// client-node's generated API classes and the like: unused exports may go although their files say nothing about effects.
const withoutEffects = /node_modules\/@kubernetes\/client-node\//;

const bundle = await rolldown({
  input: `${root}src/main.ts`,
  platform: 'node',
  external: [optionalNestPackages, nativeAddons, 'class-validator', 'class-transformer'],
  treeshake: { moduleSideEffects: (id) => !withoutEffects.test(id) },
  onLog: (level, log, forward) => (log.code === 'EVAL' ? undefined : forward(level, log)),
});
const file = `${root}dist/main.mjs`;
await bundle.write({
  file,
  format: 'esm',
  codeSplitting: false,
  minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
  // CommonJS packages inside the bundle ask for Node's own modules by require.
  banner: `import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);`,
});
await bundle.close();
console.log(`${file} ${Math.round(statSync(file).size / 1024)} KiB`);
