import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Report } from './full-disk.scenario.ts';

test('a disk that is full or read-only refuses with its code, keeps the old file and no part of the new one', () => {
  const argv = [
    '--mount',
    '--propagation',
    'private',
    join(import.meta.dirname, '../../../tools/node'),
    join(import.meta.dirname, 'full-disk.scenario.ts'),
  ];
  const report = JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' })) as Report;
  expect(report).toEqual({
    full: ['ENOSPC', 'ENOSPC'],
    contentWhileFull: 'old',
    namesWhileFull: [
      ['filler', 'state.json'],
      ['filler', 'state.json'],
    ],
    contentAfterwards: 'new',
    readOnly: ['EROFS', 'EROFS', 'EROFS'],
  });
});
