import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/**
 * Debian's kernel (6.1) has no tcx, and has GENEVE and IPIP: there programs are attached by clsact, and each tunnel has a
 * device whose packets can be looked at.
 */

const REPOSITORY = join(import.meta.dirname, '../../../..');
const SPECS = [
  'apps/node-dataplane/src/connectivity/dataplane.kernel.spec.ts',
  'apps/node-dataplane/src/data-path/netlink/senders.kernel.spec.ts',
  'bpf/tunnel.kernel.spec.ts',
];

test('what protects the overlay works with a kernel without tcx, too', { timeout: 1_500_000 }, () => {
  const vitest = ['tools/node', 'node_modules/vitest/vitest.mjs', 'run', '--project', 'kernel', ...SPECS];
  const { stdout: output, status } = spawnSync('tools/vm/run', ['-t', '1400', '--', ...vitest], {
    cwd: REPOSITORY,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  expect(status, output).toBe(0);
});
