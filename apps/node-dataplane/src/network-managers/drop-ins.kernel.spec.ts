import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';
import type { Report } from './drop-ins.scenario.ts';

test('on a read-only file system nothing is written and each file is reported; uninstall fails and says why', () => {
  const argv = [
    '--mount',
    '--propagation',
    'private',
    ...nodeCommand,
    join(import.meta.dirname, 'drop-ins.scenario.ts'),
  ];
  const { refused, satisfied, removal, kept } = JSON.parse(
    execFileSync('unshare', argv, { encoding: 'utf8' }),
  ) as Report;
  expect(refused).toEqual([
    expect.stringMatching(
      /^\/etc\/systemd\/networkd\.conf\.d\/.* is not written: EROFS: .*; write it by hand, or set /,
    ),
    expect.stringMatching(/^\/etc\/NetworkManager\/conf\.d\/.* is not written: EROFS: .*; write it by hand, or set /),
  ]);
  expect(satisfied).toEqual([]);
  expect(removal).toMatch(/EROFS.*\/etc\/systemd\/networkd\.conf\.d.*; EROFS.*\/etc\/NetworkManager/);
  expect(kept).toBe(true);
});
