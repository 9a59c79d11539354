/** Bundles apps into one ESM file each (a web page into a folder, by Vite), and one for each of their threads (`*.worker.ts`), further processes (`*.process.ts`) and parts that are loaded on demand (`*.lazy.ts`). Usage: bundle.ts APP... (tools/build calls it for those that are not up to date); with --next-layout into dist/next-layout, for the stand-in for the next layout of the maps (libs/bpf-maps shape-next.ts) */
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type Plugin, rolldown } from 'rolldown';

const root = resolve(import.meta.dirname, '..');
const { values, positionals } = parseArgs({ options: { 'next-layout': { type: 'boolean' } }, allowPositionals: true });
const [dist, conditions] = values['next-layout'] ? ['dist/next-layout', ['next-layout']] : ['dist', []];

/** Parts of Nest that it loads only when they are installed: they stay out of the bundle of an app that does not depend on them. */
const optional =
  /^(@nestjs\/(?:websockets|microservices|platform-[^/]+)|@fastify\/[^/]+|class-(?:validator|transformer)|ioredis|mqtt|kafkajs|amqplib|amqp-connection-manager|@nats-io\/[^/]+)(?:\/|$)/;

/** Packages that an app's package.json names are bundled, those parts of Nest too. */
const externalOf = (folder: string): ((id: string) => boolean) => {
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly dependencies?: Readonly<Record<string, string>>;
  };
  return (id) => {
    const name = optional.exec(id)?.[1];
    return name !== undefined && !(name in dependencies);
  };
};

/** client-node's generated API classes: unused exports may go, although their files say nothing about effects. */
const withoutEffects = /node_modules\/@kubernetes\/client-node\//;

/**
 * Native addons come beside the bundle: a library names its addon relative to its own file
 * (`new URL('../native/build/x.node', import.meta.url)`), which after bundling is the bundle.
 */
const addonsBeside = (folder: string): Plugin => ({
  name: 'addons-beside-the-bundle',
  transform: {
    filter: { id: /libs[/][^/]+[/]src[/]native\.ts$/ },
    handler(code, id) {
      return code.replaceAll(/(['"])\.\.\/native\/build\/([\w.]+\.node)\1/g, (_match, quote: string, name: string) => {
        mkdirSync(folder, { recursive: true });
        // A new file in its place: a running program has the former one mapped.
        const addon = join(folder, basename(name));
        copyFileSync(resolve(dirname(id), '../native/build', name), `${addon}.new`);
        renameSync(`${addon}.new`, addon);
        return `${quote}./${name}${quote}`;
      });
    },
  },
});

const bundleFile = async (folder: string, input: string, name: string): Promise<void> => {
  const file = join(folder, dist, `${name}.mjs`);
  const built = await rolldown({
    input,
    platform: 'node',
    tsconfig: join(root, 'tsconfig.json'),
    external: externalOf(folder),
    treeshake: { moduleSideEffects: (id) => !withoutEffects.test(id) },
    plugins: [addonsBeside(join(folder, dist))],
    resolve: { conditionNames: [...conditions, 'node'] }, // import or require: as each asks
    onLog: (level, log, print) => {
      // Nest's use of eval is its own; the addons' paths move no line.
      if (level === 'warn' && log.code !== 'EVAL' && log.code !== 'SOURCEMAP_BROKEN') print(level, log);
    },
  });
  const minify = { compress: true, mangle: false, codegen: { removeWhitespace: true } } as const;
  // CommonJS packages inside ask for Node's own modules by require.
  const banner =
    "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";
  // Beside the folder, as deep as that: what is cut off by a full disk is never taken for a bundle.
  const made = join(folder, `${dist}.new`);
  const options = { format: 'esm', codeSplitting: false, sourcemap: true, minify, banner } as const;
  await built.write({ file: join(made, `${name}.mjs`), ...options });
  mkdirSync(join(folder, dist), { recursive: true });
  for (const part of [`${name}.mjs.map`, `${name}.mjs`]) renameSync(join(made, part), join(folder, dist, part));
  rmSync(made, { recursive: true });
  console.log(`bundled ${relative(root, file)}: ${(statSync(file).size / 1e6).toFixed(1)} MB`);
};

/** A web page: its files are in dist with hashes in their names, and index.html names them. */
const buildPage = async (folder: string): Promise<void> => {
  const { build } = await import('vite'); // the others need none of it
  await build({ configFile: join(folder, 'vite.config.ts'), logLevel: 'warn' });
  const sizes = globSync('dist/assets/*', { cwd: folder }).map((file) => statSync(join(folder, file)).size);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  console.log(`bundled ${relative(root, join(folder, dist))}: ${(total / 1e6).toFixed(1)} MB`);
};

/** Threads, further processes and lazy parts of an app find their bundles beside the app's own, under their own names. */
const bundle = async (app: string): Promise<void> => {
  const folder = join(root, 'apps', app);
  if (existsSync(join(folder, 'index.html'))) return buildPage(folder);
  const others = globSync('src/**/*.{worker,process,lazy}.ts', { cwd: folder });
  for (const source of others) await bundleFile(folder, join(folder, source), basename(source, '.ts'));
  // Last: tools/build goes by its time.
  await bundleFile(folder, join(folder, 'src/main.ts'), 'main');
};

for (const app of positionals) await bundle(app);
