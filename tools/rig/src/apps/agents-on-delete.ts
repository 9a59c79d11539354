import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** In one line, as charts of before 0.1.0 had it, or in lines of their own. */
const SCRIPT = `#!/bin/sh
exec sed -e 's/updateStrategy: { type: RollingUpdate,/updateStrategy: { type: OnDelete,/' \\
  -e '/^ *updateStrategy:$/{n;s/type: RollingUpdate/type: OnDelete/}'
`;

/**
 * A post-renderer for Helm with which agents wait for the test, which deletes each when it is to be replaced.
 * @param folder where the program is written
 */
export const agentsOnDelete = (folder: string): string => {
  const program = join(folder, 'on-delete');
  writeFileSync(program, SCRIPT);
  chmodSync(program, 0o755);
  return program;
};
