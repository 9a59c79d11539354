import { execFileSync } from 'node:child_process';
import { nodeCommand } from '@unbounded/config/node-command';

/** How long a node takes to program many Networks, and what they cost it at rest. In namespaces of its own. See ../README.md. */

const ENTER = 'mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf; exec "$0" "$@"';
const scenario = new URL('../../../apps/node-dataplane/src/l2/scale.scenario.ts', import.meta.url).pathname;

interface Scale {
  readonly networks: number;
  readonly entries: number;
  readonly firstPassMs: number;
  readonly restPassMs: number;
  readonly heapMebibytes: number;
}

/** Networks, and endpoints of each. */
const SIZES = [
  [1, 10],
  [10, 50],
  [100, 50],
] as const;

const measure = (networks: number, endpoints: number): Scale => {
  const shell = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER];
  const argv = [...shell, ...nodeCommand, '--expose-gc', scenario, String(networks), String(endpoints)];
  return JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' }).trim().split('\n').at(-1)!) as Scale;
};

execFileSync(new URL('../../../bpf/build.sh', import.meta.url).pathname);
console.log(
  '| Networks | entries of the maps | first pass (ms) | a pass at rest (ms) | heap (MiB more) |\n|---|---|---|---|---|',
);
for (const [networks, endpoints] of SIZES) {
  const { entries, firstPassMs, restPassMs, heapMebibytes } = measure(networks, endpoints);
  const cells = [networks, entries, firstPassMs.toFixed(0), restPassMs.toFixed(0), heapMebibytes.toFixed(1)];
  console.log(`| ${cells.join(' | ')} |`);
}
