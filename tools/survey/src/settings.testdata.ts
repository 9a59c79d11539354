import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A root folder with these files; processes are files, too: `proc/1/comm`. */
export const rootWith = (files: Readonly<Record<string, string>>): { readonly root: string } & Disposable => {
  const root = mkdtempSync(join(tmpdir(), 'survey-'));
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return { root, [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
};
