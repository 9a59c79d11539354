import { execFileSync } from 'node:child_process';
import { nodeCommand } from '@unbounded/config/node-command';

import { expect, test } from 'vitest';

const SCENARIO = new URL('test/slow-readers.scenario.ts', import.meta.url).pathname;
/** In a network namespace of its own TCP buffers are small, so that what waits does so in the relay and not in the kernel. */
const SMALL = [
  'ip link set lo up',
  ...['tcp_rmem', 'tcp_wmem'].map((name) => `sysctl -qw net.ipv4.${name}="4096 16384 16384"`),
];

test('500 registered clients that do not read use up the memory for queues, and others lose nothing of their share', () => {
  // It takes some seconds of processor time.
  const script = `${SMALL.join(' && ')} && exec "$0" "$@"`;
  const output = execFileSync('unshare', ['--net', 'sh', '-c', script, ...nodeCommand, SCENARIO], {
    encoding: 'utf8',
  });
  const result = JSON.parse(output.trim().split('\n').at(-1)!) as Record<string, number>;
  console.log(output.trim());
  expect(result).toMatchObject({ got: result['of'], ended: 0 });
  expect(result['dropped']).toBeGreaterThan(0);
  // In-flight writes cannot be dropped; they are short once half of the memory is used.
  expect(result['most']).toBeLessThan(1.1 * 32 * 1024 * 1024);
});
