import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { makeNodeCgroup, removeCgroups } from './cgroups.ts';

test('a lab that is brought up as soon as another one is down gets its real time', async () => {
  for (let round = 0; round < 20; round++) {
    const files = makeNodeCgroup('cgroups-spec', 1);
    expect(files.map(existsSync)).not.toContain(false);
    await removeCgroups();
    expect(files.map((file) => existsSync(dirname(file)))).not.toContain(true);
  }
});
