import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type ImportGraph, importGraph } from './import-circles.ts';
import { files, root } from './tree.ts';

/** The lab (tools/rig) is a product that people use: it is complete without what tests do with it. */

const SRC = 'tools/rig/src/';

const isTest = (file: string): boolean => file.startsWith(`${SRC}scenario/`) || file.endsWith('.spec.ts');

const importsOfTests = (graph: ImportGraph): string[] =>
  [...graph].flatMap(([file, imported]) =>
    isTest(file) ? [] : imported.filter(isTest).map((test) => `${file} imports ${test}`),
  );

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** Imports of files that are written for the moment. */
const planted = (texts: Readonly<Record<string, string>>): ImportGraph => {
  const folder = mkdtempSync(join(tmpdir(), 'rig-layers-'));
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
      }),
    );
    expect(found).toEqual([
      `${SRC}substrate/up.ts imports ${SRC}scenario/flow.ts`,
      `${SRC}checks/verify.ts imports ${SRC}checks/verify.spec.ts`,
    ]);
  });
});
