import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { join } from 'node:path';

import { expect, test } from 'vitest';

const NODE = join(import.meta.dirname, '../../../tools/node');

test('a socket that may not send (EPERM) is replaced on the same port until it may', async () => {
  const script = new URL('test/forbidden.ts', import.meta.url).pathname;
  const command = `ip link set lo up && exec "${NODE}" "${script}"`;
  const { stdout } = await promisify(execFile)('unshare', ['--net', 'sh', '-c', command]);
  expect(JSON.parse(stdout)).toEqual({ cameMeanwhile: 0, isSamePort: true, errors: ['EPERM'] });
});
