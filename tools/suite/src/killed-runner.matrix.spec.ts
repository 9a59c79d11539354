import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '@unbounded/testing';
import { afterEach, expect, test } from 'vitest';
import { LAYERS } from './layers.ts';

/** A runner that is killed leaves nothing of its layer: each layer is started for real, and its runner gets SIGKILL in the middle. */

const root = join(import.meta.dirname, '../../..');

/** For each layer a spec, and a process by which one sees that the spec is at work. */
const AT_WORK: readonly (readonly [layer: string, spec: string, program: RegExp])[] = [
  ['unit', 'libs/topology', /vitest\/dist\/workers/],
  ['bpf', 'bpf', /vitest\/dist\/workers/],
  ['fuzz', 'tools/fuzz/src/c.fuzz', /\.fuzz\.c/],
  ['kernel', 'apps/node-dataplane/src/connectivity/paths', /wireguard-go/],
  ['kube', 'libs/controller-runtime/src/informer', /kube-apiserver/],
  ['browser', 'apps/dashboard/src/test', /chromium/],
  ['lab', 'tools/rig/src', /kubelet --config/],
  ['vm', 'tools/rig/src', /qemu-system/],
  ['faults', 'W-05', /vitest\/dist\/workers/],
];
const RUNS_LONGER_MS = 200;

interface Process {
  readonly pid: number;
  readonly command: string;
}

const readOr = <T>(read: () => T, otherwise: T): T => {
  try {
    return read();
  } catch {
    return otherwise; // it ended meanwhile
  }
};

const ownPidNamespace = readlinkSync('/proc/self/ns/pid');
/** What runs in PID namespaces other than ours; zombies have no command line. */
const inOtherNamespaces = (): Process[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => readOr(() => readlinkSync(`/proc/${pid}/ns/pid`), ownPidNamespace) !== ownPidNamespace)
    .map((pid) => ({
      pid: Number(pid),
      command: readOr(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'), '').replaceAll('\0', ' '),
    }))
    .filter(({ command }) => command !== '');

/** What a run could leave on the machine. */
const machine = (): Record<string, readonly string[]> => {
  const lines = (command: string): string[] =>
    execFileSync('sh', ['-c', command], { encoding: 'utf8' }).split('\n').filter(Boolean).sort();
  return {
    links: lines('ip -o link | cut -d: -f2'),
    mounts: lines("awk '{print $2, $3}' /proc/self/mounts"),
    namedNamespaces: lines('ls /run/netns 2>/dev/null || true'),
    netNamespaces: lines('lsns --noheadings --output NS --type net'),
    rules: lines('nft list ruleset'),
    pinned: lines('find /sys/fs/bpf 2>/dev/null || true'),
  };
};

const before = { ...machine(), processes: inOtherNamespaces() };
const started: { pid?: number | undefined }[] = [];
afterEach(() => {
  for (const { pid } of started.splice(0)) if (pid !== undefined) readOr(() => process.kill(pid, 'SIGKILL'), false);
});

test.each(AT_WORK)('%s: nothing is left', { timeout: 400_000 }, async (layer, spec, program) => {
  const runner = spawn(join(root, 'tools/test'), [layer, spec], { cwd: root, stdio: 'ignore' });
  started.push(runner);
  const ended = once(runner, 'exit');
  await until(
    `${layer} is at work`,
    () => inOtherNamespaces().some(({ command }) => program.test(command)) || runner.exitCode !== null,
    300_000,
  );
  expect(runner.exitCode, 'it ended before it was killed').toBeNull();
  await new Promise((resolve) => setTimeout(resolve, RUNS_LONGER_MS));
  expect(inOtherNamespaces().length).toBeGreaterThan(before.processes.length);
  runner.kill('SIGKILL');
  await ended;
  await until('its processes are gone', () => inOtherNamespaces().length === before.processes.length, 10_000);
  await until(
    'and what they held',
    () => JSON.stringify(machine()) === JSON.stringify({ ...before, processes: undefined }),
    10_000,
  ).catch(() => undefined); // compared below, so that a failure shows what is left
  expect({ ...machine(), processes: inOtherNamespaces() }).toEqual(before);
});

test('every layer that CI runs is killed, and the faults', () => {
  const ci = LAYERS.filter(({ tier }) => tier === 'ci').map(({ name }) => name);
  expect(AT_WORK.map(([layer]) => layer).sort()).toEqual([...ci, 'faults'].sort());
});
