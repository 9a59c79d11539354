import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { findCircles, importGraph } from './import-circles.ts';
import { files, root } from '@unbounded/testing/tree';

/** A client has the directory's entry of its key, and the entry has its client: two halves of one thing. */
const MUTUAL = [['apps/relay/src/client-context.ts', 'apps/relay/src/client.ts', 'apps/relay/src/directory.ts']];

test('no files import each other in a circle, types included', () => {
  expect(findCircles(importGraph(root, files('*.ts')))).toEqual(MUTUAL);
});

test('a circle is found that only types close', () => {
  const folder = mkdtempSync(join(tmpdir(), 'circles-'));
  try {
    const planted = {
      'a.ts': "import type { B } from './inside/b.ts';\nexport type A = B;\n",
      'inside/b.ts': "export { c as b } from './c.ts';\nexport type B = string;\n",
      'inside/c.ts': "import { type A } from '../a.ts';\nexport const c: A = '';\n",
      'alone.ts': "import './a.ts';\n",
    };
    for (const [name, text] of Object.entries(planted)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    expect(findCircles(importGraph(folder, Object.keys(planted)))).toEqual([['a.ts', 'inside/b.ts', 'inside/c.ts']]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
