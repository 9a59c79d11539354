import { execFileSync } from 'node:child_process';
import { nodeCommand } from '@unbounded/config/node-command';
import { type Round, row, ROUNDS } from './rounds.ts';

/** How long a node takes to program many Networks, and what they cost it at rest and each frame. In namespaces of its own. See ../README.md. */

const ENTER = 'mount -t sysfs sysfs /sys; mount -t bpf bpf /sys/fs/bpf; exec "$0" "$@"';
const pathOf = (file: string): string => new URL(`../../../${file}`, import.meta.url).pathname;
const SCALE = pathOf('apps/node-dataplane/src/l2/scale.scenario.ts');
const LOOKUP = pathOf('bpf/l2-lookup.scenario.ts');

interface Scale {
  readonly networks: number;
  readonly entries: number;
  readonly firstPassMs: number;
  readonly restPassMs: number;
  readonly heapMebibytes: number;
}

interface Lookup {
  /** FDB entries of both sides. */
  readonly entries: readonly [few: number, many: number];
  /** Nanoseconds of the port's program: ours with many entries. */
  readonly turns: readonly Round[];
}

/** Networks, and endpoints of each. */
const SIZES = [
  [1, 10],
  [10, 50],
  [100, 50],
] as const;

const report = (scenario: string, ...args: readonly number[]): unknown => {
  const shell = ['--net', '--mount', '--propagation', 'private', 'sh', '-c', ENTER];
  const argv = [...shell, ...nodeCommand, '--expose-gc', scenario, ...args.map(String)];
  return JSON.parse(execFileSync('unshare', argv, { encoding: 'utf8' }).trim().split('\n').at(-1)!) as unknown;
};

execFileSync(pathOf('bpf/build.sh'));
console.log(
  '| Networks | entries of the maps | first pass (ms) | a pass at rest (ms) | heap (MiB more) |\n|---|---|---|---|---|',
);
for (const [networks, endpoints] of SIZES) {
  const { entries, firstPassMs, restPassMs, heapMebibytes } = report(SCALE, networks, endpoints) as Scale;
  const cells = [networks, entries, firstPassMs.toFixed(0), restPassMs.toFixed(0), heapMebibytes.toFixed(1)];
  console.log(`| ${cells.join(' | ')} |`);
}
const { entries, turns } = report(LOOKUP, ROUNDS) as Lookup;
const [few, many] = entries.map((count) => `${count.toLocaleString('en')} entries (ns)`);
console.log(
  `\n| a frame to a known address | ${many} | ${few} | ratio | of rounds | goal |\n|---|---|---|---|---|---|`,
);
console.log(row('program of the port', turns, '1.10'));
