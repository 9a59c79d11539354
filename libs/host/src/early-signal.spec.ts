import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { nodeCommand } from '@unbounded/config/node-command';
import { expect, test } from 'vitest';

test('a program that is asked to end before its parts are there ends cleanly, and starts nothing that it does not stop', () => {
  const [program, ...argv] = nodeCommand;
  const { status, signal, stdout } = spawnSync(
    program,
    [...argv, join(import.meta.dirname, 'early-signal.scenario.ts')],
    {
      encoding: 'utf8',
      timeout: 20_000,
    },
  );
  expect({ status, signal }).toEqual({ status: 0, signal: null });
  const lines = stdout.split('\n').filter((line) => /^(started|stopped) /.test(line));
  expect(lines.filter((line) => line.endsWith('second'))).toEqual([]);
  expect(lines.filter((line) => line.startsWith('started')).length).toBe(
    lines.filter((line) => line.startsWith('stopped')).length,
  );
});
