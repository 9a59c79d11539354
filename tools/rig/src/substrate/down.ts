import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { removeCgroups } from '../machine/cgroups.ts';
import { run, tryRun } from '../machine/command.ts';
import { NAMESPACE_PREFIX } from '../layout/layout.ts';
import { madeFoldersFile } from '../node/node.ts';
import { state } from '../machine/paths.ts';
import { startTime } from '../machine/proc.ts';

/** Takes the lab away, whatever of it is there: it is found by its namespaces, groups and state folder, not by memory. */

const KILL_DEADLINE_MS = 20_000;

const labNamespaces = (): string[] =>
  existsSync('/run/netns') ? readdirSync('/run/netns').filter((name) => name.startsWith(NAMESPACE_PREFIX)) : [];

const isAlive = (pid: number): boolean => startTime(pid) !== undefined;

/** Everything that runs in the lab's namespaces, and what its pid files name (a reused pid is told by its start time). */
const labPids = (): Set<number> => {
  const pids = new Set<number>();
  for (const name of labNamespaces()) {
    for (const pid of (tryRun(['ip', 'netns', 'pids', name]) ?? '').split('\n')) if (pid) pids.add(Number(pid));
  }
  const folder = `${state}/pids`;
  for (const name of existsSync(folder) ? readdirSync(folder) : []) {
    const [pid, started] = readFileSync(`${folder}/${name}`, 'utf8').split(' ');
    if (started !== undefined && startTime(Number(pid)) === started) pids.add(Number(pid));
  }
  pids.delete(process.pid);
  return pids;
};

const killAll = async (): Promise<void> => {
  const seen = new Set<number>(); // a process that is ending has left its namespaces already, but is not gone yet
  for (const end = Date.now() + KILL_DEADLINE_MS; ;) {
    for (const pid of labPids()) seen.add(pid);
    const alive = [...seen].filter(isAlive);
    if (alive.length === 0) return;
    if (Date.now() > end) throw new Error(`these processes do not end: ${alive.join(', ')}`);
    for (const pid of alive) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it ended by itself
      }
    }
    await delay(100);
  }
};

const unmountState = (): void => {
  const mounts = readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[1] ?? '');
  for (const mount of mounts.filter((path) => path.startsWith(`${state}/`)).toReversed()) run(['umount', '-l', mount]);
};

/** Removes the folders that `up` had to make as mount points, as far as nobody else put something there. */
const removeMadeFolders = (): void => {
  if (!existsSync(madeFoldersFile)) return;
  for (const folder of readFileSync(madeFoldersFile, 'utf8').split('\n').filter(Boolean).toReversed()) {
    if (existsSync(folder) && readdirSync(folder).length === 0) rmdirSync(folder);
  }
};

/** `ip netns add` leaves its folder and a mount behind; both go when no namespace of anyone's is left. */
const removeEmptyNetnsFolder = (): void => {
  if (!existsSync('/run/netns') || readdirSync('/run/netns').length > 0) return;
  tryRun(['umount', '/run/netns']);
  rmdirSync('/run/netns');
};

export const down = async (): Promise<void> => {
  await killAll();
  for (const name of labNamespaces()) run(['ip', 'netns', 'delete', name]);
  removeEmptyNetnsFolder();
  unmountState();
  await removeCgroups();
  removeMadeFolders();
  rmSync(state, { recursive: true, force: true });
};
