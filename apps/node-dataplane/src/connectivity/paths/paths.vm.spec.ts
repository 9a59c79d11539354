import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Seen } from './kernel-wireguard.scenario.ts';

const REPOSITORY = join(import.meta.dirname, '../../../../..');
const SCENARIO = 'apps/node-dataplane/src/connectivity/paths/kernel-wireguard.scenario.ts';

test('with the kernel’s WireGuard paths go direct, and back when one direction is cut', { timeout: 400_000 }, () => {
  const command = `modprobe wireguard && cd ${REPOSITORY} && tools/node ${SCENARIO}`;
  const { stdout: output, status } = spawnSync('tools/vm/run', ['-t', '360', '-m', '2048', '--', 'sh', '-c', command], {
    cwd: REPOSITORY,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  expect(status, output).toBe(0);
  const seen = JSON.parse(output.slice(output.indexOf('{"moves"'))) as Seen;
  console.log(`back on the relay after ${seen.backMs} ms`);
  expect(seen.endpoints).toEqual([
    ['127.0.0.1:40000', '127.0.0.1:40001'],
    ['10.9.0.2:51820', '10.9.0.1:51820'],
    ['127.0.0.1:40000', '127.0.0.1:40001'],
  ]);
  for (const moves of seen.moves) expect(moves.slice(0, 2)).toEqual(['relay unvalidated', 'direct validated']);
  for (const moves of seen.moves) expect(moves.at(-1)).toMatch(/^relay (unanswered|peer)$/);
  expect(seen.answered).toBe(20);
  expect(seen.backMs).toBeLessThan(3000);
});
