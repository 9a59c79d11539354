import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type ImportGraph, importGraph } from './import-circles.ts';
import { files, root } from '@unbounded/testing/tree';

/**
 * The lab (tools/rig) is a product that people use: it is complete without what tests do with it. Its folders stand on each
 * other in one order, and what it stands on itself is chosen in one place.
 */

const SRC = 'tools/rig/src/';

/** From below: a folder imports from itself and from those before it. `options` are the files of features that only say what can be asked for. */
const LAYERS = [
  ...[
    'options',
    'machine',
    'layout',
    'underlay',
    'node',
    'kubernetes',
    'apps',
    'status',
    'checks',
    'features',
    'substrate',
  ],
  ...['cli', 'scenario'],
];

const layerOf = (file: string): number => {
  const inside = file.slice(SRC.length);
  return LAYERS.indexOf(/^features\/(\w+\/)?options\.ts$/.test(inside) ? 'options' : inside.split('/')[0]!);
};

/** The folder of a substrate or feature that a file is in; what stands directly in the parent folder is for all. */
const partOf = (file: string, parent: 'substrate' | 'features'): string | undefined =>
  new RegExp(`^${SRC}${parent}/([^/]+)/`).exec(file)?.[1];

const isTest = (file: string): boolean => file.startsWith(`${SRC}scenario/`) || file.endsWith('.spec.ts');

const importsOfTests = (graph: ImportGraph): string[] =>
  [...graph].flatMap(([file, imported]) =>
    isTest(file) ? [] : imported.filter(isTest).map((test) => `${file} imports ${test}`),
  );

const importsOfHigherLayers = (graph: ImportGraph): string[] =>
  [...graph].flatMap(([file, imported]) =>
    isTest(file)
      ? []
      : imported
          .filter((other) => layerOf(file) === -1 || layerOf(other) > layerOf(file))
          .map((other) => `${file} imports ${other}`),
  );

/** Of files in a substrate's or a feature's folder: imports from a sibling's. */
const importsOfSiblings = (graph: ImportGraph): string[] =>
  (['substrate', 'features'] as const).flatMap((parent) =>
    [...graph].flatMap(([file, imported]) =>
      imported
        .filter((other) => {
          const [from, to] = [partOf(file, parent), partOf(other, parent)];
          return from !== undefined && to !== undefined && from !== to && !isTest(file);
        })
        .map((other) => `${file} imports ${other}`),
    ),
  );

/** Where the option is declared, and where it decides. */
const FABRIC = new Set([`${SRC}layout/options.ts`, `${SRC}layout/substrate.ts`]);
/** Files that ask for `--fabric` instead of for the substrate. */
const asksForFabric = (graph: ImportGraph, at: string): string[] =>
  [...graph.keys()].filter(
    (file) => !isTest(file) && !FABRIC.has(file) && /(?<!--)\bfabric\b/.test(readFileSync(join(at, file), 'utf8')),
  );

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Files that are written for the moment, and their imports. */
const planted = (texts: Readonly<Record<string, string>>): { readonly at: string; readonly graph: ImportGraph } => {
  const folder = mkdtempSync(join(tmpdir(), 'rig-layers-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(folder, SRC, name)), { recursive: true });
    writeFileSync(join(folder, SRC, name), text);
  }
  const graph = importGraph(
    folder,
    Object.keys(texts).map((name) => `${SRC}${name}`),
  );
  return { at: folder, graph };
};

const rig = importGraph(root, files(`${SRC}*.ts`));

describe('product code of the lab', () => {
  test('imports nothing that is for tests', () => {
    expect(importsOfTests(rig)).toEqual([]);
  });

  test('that imports a scenario or a spec is found, of a value and of a type', () => {
    const found = importsOfTests(
      planted({
        'substrate/up.ts': "import { flow } from '../scenario/flow.ts';\nexport const up = flow;\n",
        'checks/verify.ts': "import type { Case } from './verify.spec.ts';\nexport type Verified = Case;\n",
        'scenario/flow.ts': "import '../substrate/up.ts';\nexport const flow = 1;\n",
        'checks/verify.spec.ts': "import { flow } from '../scenario/flow.ts';\nexport type Case = typeof flow;\n",
      }).graph,
    );
    expect(found).toEqual([
      `${SRC}substrate/up.ts imports ${SRC}scenario/flow.ts`,
      `${SRC}checks/verify.ts imports ${SRC}checks/verify.spec.ts`,
    ]);
  });
});

describe('folders of the lab', () => {
  test('stand on each other in one order', () => {
    expect(importsOfHigherLayers(rig)).toEqual([]);
  });

  test('of substrates do not import each other, nor do those of features', () => {
    expect(importsOfSiblings(rig)).toEqual([]);
  });

  test('an import of what stands higher is found, as is a folder without a place in the order', () => {
    const { graph } = planted({
      'node/node.ts': "import type { Up } from '../substrate/up.ts';\nexport type Node = Up;\n",
      'substrate/up.ts': "import { blockUdp } from '../features/relay/relay.ts';\nexport type Up = typeof blockUdp;\n",
      'layout/options.ts': "import { choices } from '../features/relay/options.ts';\nexport const all = choices;\n",
      'features/relay/options.ts':
        "import { family } from '../../layout/addresses.ts';\nexport const choices = family;\n",
      'features/relay/relay.ts': "import '../../layout/options.ts';\nexport const blockUdp = 1;\n",
      'layout/addresses.ts': 'export const family = 4;\n',
      'elsewhere/other.ts': "import '../layout/addresses.ts';\n",
    });
    expect(importsOfHigherLayers(graph)).toEqual([
      `${SRC}node/node.ts imports ${SRC}substrate/up.ts`,
      `${SRC}features/relay/options.ts imports ${SRC}layout/addresses.ts`,
      `${SRC}elsewhere/other.ts imports ${SRC}layout/addresses.ts`,
    ]);
  });

  test('a substrate that imports the other one is found, and a feature that does', () => {
    const { graph } = planted({
      'substrate/bare/up.ts':
        "import { nodes } from '../cluster/up.ts';\nimport '../steps.ts';\nexport const up = nodes;\n",
      'substrate/cluster/up.ts': 'export const nodes = 1;\n',
      'substrate/steps.ts': "import './cluster/up.ts';\n",
      'features/egress/egress.ts': "import '../relay/relay.ts';\n",
      'features/relay/relay.ts': '',
    });
    expect(importsOfSiblings(graph)).toEqual([
      `${SRC}substrate/bare/up.ts imports ${SRC}substrate/cluster/up.ts`,
      `${SRC}features/egress/egress.ts imports ${SRC}features/relay/relay.ts`,
    ]);
  });
});

/** Those files, and what they import, directly or by others. */
const closureOf = (graph: ImportGraph, first: readonly string[]): ReadonlySet<string> => {
  const found = new Set<string>(first);
  for (const file of found) for (const imported of graph.get(file) ?? []) found.add(imported);
  return found;
};

test('what runs in the virtual machine imports nothing whose change does not make the layer vm run anew', () => {
  const inputs = (
    JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      nx: { targets: { vm: { inputs: readonly unknown[] } } };
    }
  ).nx.targets.vm.inputs;
  const left = inputs
    .filter((input) => typeof input === 'string')
    .flatMap((input) => /^!.*scenario\/\{([\w,-]+)\}/.exec(input)?.[1]!.split(',') ?? []);
  expect(left).toContain('egress');
  const used = closureOf(
    rig,
    [...rig.keys()].filter((file) => file.startsWith(`${SRC}scenario/bare/`)),
  );
  expect([...used]).toContain(`${SRC}scenario/scenario.ts`);
  const ofOthers = [...used].filter((file) => left.some((folder) => file.startsWith(`${SRC}scenario/${folder}/`)));
  expect(ofOthers).toEqual([]);
});

describe('what a lab stands on', () => {
  test('is chosen in one place: nothing else asks for --fabric', () => {
    expect(asksForFabric(rig, root)).toEqual([]);
  });

  test('a branch on the option is found, but not a text that names it', () => {
    const { at, graph } = planted({
      'layout/substrate.ts': 'export const name = (fabric: boolean) => fabric;\n',
      'cli/logs.ts': 'export const logs = (options: { fabric: boolean }) => options.fabric;\n',
      'cli/main.ts': "export const hint = 'up without --fabric';\n",
    });
    expect(asksForFabric(graph, at)).toEqual([`${SRC}cli/logs.ts`]);
  });
});
