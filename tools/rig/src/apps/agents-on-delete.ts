import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A post-renderer for Helm with which agents wait for the test, which deletes each when it is to be replaced.
 * @param folder where the program is written
 */
export const agentsOnDelete = (folder: string): string => {
  const program = join(folder, 'on-delete');
  writeFileSync(
    program,
    "#!/bin/sh\nexec sed 's/updateStrategy: { type: RollingUpdate,/updateStrategy: { type: OnDelete,/'\n",
  );
  chmodSync(program, 0o755);
  return program;
};
