import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { crdFiles } from '@unbounded/crds/files';

/** Writes everything in the tree that is derived from code. A test of each says when a file has drifted. */
const root = new URL('../deploy/crds/', import.meta.url);
mkdirSync(root, { recursive: true });
for (const [name, text] of crdFiles()) {
  writeFileSync(new URL(name, root), text);
  console.log(fileURLToPath(new URL(name, root)));
}
