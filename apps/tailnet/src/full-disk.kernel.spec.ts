import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Report } from './full-disk.scenario.ts';

test('a disk that is full takes no pod, leaves nothing of it, and keeps what it has of others', () => {
  const scenario = join(import.meta.dirname, 'full-disk.scenario.ts');
  const node = join(import.meta.dirname, '../../../tools/node');
  const printed = execFileSync('unshare', ['--mount', '--propagation', 'private', node, scenario], {
    encoding: 'utf8',
  });
  expect(JSON.parse(printed) as Report).toEqual({
    refused: ['ENOSPC', 'ENOSPC'],
    foldersWhileFull: ['a'],
    keptWhileFull: [{ podUID: 'a', namespace: 'shop', podName: 'a', start: 'Immediate', addresses: [] }],
    foldersAfterwards: ['a', 'b'],
  });
});
