/** Writes what is derived from code; `--check` only says what has drifted, and fails. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { crdFiles } from '@unbounded/crds/files';

const folder = new URL('../deploy/crds/', import.meta.url);
const isCheck = process.argv.includes('--check');
const drifted: string[] = [];
mkdirSync(folder, { recursive: true });
for (const [name, text] of crdFiles()) {
  const file = new URL(name, folder);
  if (existsSync(file) && readFileSync(file, 'utf8') === text) continue;
  drifted.push(fileURLToPath(file));
  if (!isCheck) writeFileSync(file, text);
}
for (const file of drifted) console.log(`${isCheck ? 'drifted: ' : 'wrote '}${file}`);
if (drifted.length === 0) console.log('generated files are up to date');
else if (isCheck) {
  console.error('run tools/generate and commit what it writes');
  process.exitCode = 1;
}
