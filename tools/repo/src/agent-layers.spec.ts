import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type ImportGraph, importGraph } from './import-circles.ts';
import { files, root } from '@unbounded/testing/tree';

/**
 * The agent (apps/node-dataplane) is a list of sections over rooms that all of them share. A section can be read, and taken out of
 * the list, by itself: no other one stands on it, and no shared room knows it.
 */

const SRC = 'apps/node-dataplane/src/';

const SHARED = new Set(['agent', 'attachment', 'bpf', 'kernel', 'state', 'status', 'thread', 'world']);
/** Folders of a section beside that of its name: data paths render connectivity's plans, and nobody else's. */
const PARTS: ReadonlyMap<string, string> = new Map([['data-path', 'connectivity']]);
/** They name the sections that there are. */
const LISTS = new Set(
  ['agent/sections.ts', 'agent/cleanup.ts', 'agent.module.ts', 'main.ts'].map((name) => SRC + name),
);

const isTest = (file: string): boolean => /(^|[./])(spec|scenario|testdata|attempts|fuzz)\.ts$/.test(file);

/** The section that a file is of; undefined: it is in a shared room, as what stands directly in the source folder is. */
const sectionOf = (file: string): string | undefined => {
  const [folder, inside] = file.slice(SRC.length).split('/');
  return inside === undefined || SHARED.has(folder!) ? undefined : (PARTS.get(folder!) ?? folder);
};

/** Imports of a section's files by others, types included. */
const importsOfSections = (graph: ImportGraph, from: 'shared' | 'sections'): string[] =>
  [...graph].flatMap(([file, imported]) => {
    const section = sectionOf(file);
    if (isTest(file) || LISTS.has(file) || (section === undefined) !== (from === 'shared')) return [];
    return imported
      .filter((other) => other.startsWith(SRC))
      .filter((other) => sectionOf(other) !== undefined && sectionOf(other) !== section)
      .map((other) => `${file} imports ${other}`);
  });

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Imports of files that are written for the moment. */
const planted = (texts: Readonly<Record<string, string>>): ImportGraph => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-layers-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(dirname(join(folder, SRC, name)), { recursive: true });
    writeFileSync(join(folder, SRC, name), text);
  }
  return importGraph(
    folder,
    Object.keys(texts).map((name) => `${SRC}${name}`),
  );
};

const agent = importGraph(root, files(`${SRC}*.ts`));

test('every shared room is there, as are the sections and the files that list them', () => {
  const names = new Set([...agent.keys()].map((file) => file.slice(SRC.length).split('/')[0]));
  for (const room of [...SHARED, ...PARTS.keys(), ...PARTS.values()]) expect(names).toContain(room);
  for (const list of LISTS) expect(agent.has(list), list).toBe(true);
});

describe('rooms that the sections share', () => {
  test('import nothing of a section', () => {
    expect(importsOfSections(agent, 'shared')).toEqual([]);
  });

  test('that import a section are found, of a value and of a type; tests and the lists of sections may', () => {
    const graph = planted({
      'kernel/routes.ts': "import { POOLS } from '../egress/pools.plan.ts';\nexport const routes = POOLS;\n",
      'section.port.ts': "import type { Entry } from './data-path/port.ts';\nexport type Section = Entry;\n",
      'agent/open-agent.ts':
        "import { sectionsOf } from './sections.ts';\nimport { egress } from '../egress/section.ts';\n",
      'agent/sections.ts': "import { egress } from '../egress/section.ts';\nexport const sectionsOf = egress;\n",
      'agent/node.spec.ts': "import { egress } from '../egress/section.ts';\n",
      'kernel/table.testdata.ts': "import { egress } from '../egress/section.ts';\n",
      'egress/section.ts': "import { routes } from '../kernel/routes.ts';\nexport const egress = routes;\n",
      'egress/pools.plan.ts': 'export const POOLS = 1;\n',
      'data-path/port.ts': 'export type Entry = 1;\n',
    });
    expect(importsOfSections(graph, 'shared')).toEqual([
      `${SRC}kernel/routes.ts imports ${SRC}egress/pools.plan.ts`,
      `${SRC}section.port.ts imports ${SRC}data-path/port.ts`,
      `${SRC}agent/open-agent.ts imports ${SRC}egress/section.ts`,
    ]);
  });
});

describe('sections', () => {
  test('import nothing of one another', () => {
    expect(importsOfSections(agent, 'sections')).toEqual([]);
  });

  test('that import another one, or a part of it, are found; its own parts it may', () => {
    const graph = planted({
      'connectivity/pass.ts': "import type { DataPath } from '../data-path/port.ts';\nimport '../state/file.ts';\n",
      'connectivity/kernel/firewall.ts': "import { POOLS } from '../../egress/pools.plan.ts';\n",
      'data-path/port.ts': "import type { Pool } from '../egress/pools.plan.ts';\nexport type DataPath = Pool;\n",
      'egress/section.ts':
        "import { firewall } from '../connectivity/kernel/firewall.ts';\nimport './pools.plan.ts';\n",
      'egress/pools.plan.ts': "import { port } from '../data-path/port.ts';\nexport const POOLS = port;\n",
      'egress/section.spec.ts': "import '../connectivity/pass.ts';\n",
      'state/file.ts': '',
    });
    expect(importsOfSections(graph, 'sections')).toEqual([
      `${SRC}connectivity/kernel/firewall.ts imports ${SRC}egress/pools.plan.ts`,
      `${SRC}data-path/port.ts imports ${SRC}egress/pools.plan.ts`,
      `${SRC}egress/section.ts imports ${SRC}connectivity/kernel/firewall.ts`,
      `${SRC}egress/pools.plan.ts imports ${SRC}data-path/port.ts`,
    ]);
  });
});
