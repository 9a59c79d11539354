import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { state } from './paths.ts';

/**
 * Where the lab's nodes account their processes: one group per node, below the group that the command itself runs in
 * (version 1) or below the root of the hierarchy (version 2, where only leaves hold processes). The layout of the
 * machine's own groups is left as it is.
 */

const ROOT = '/sys/fs/cgroup';
const LAB = `unbounded-${basename(state)}`;
const V1_CONTROLLERS = [
  'cpu',
  'cpuacct',
  'cpuset',
  'memory',
  'devices',
  'freezer',
  'blkio',
  'pids',
  'systemd',
] as const;

const isVersion2 = (): boolean => existsSync(join(ROOT, 'cgroup.controllers'));

/** Path of our own group in a version 1 hierarchy, from /proc/self/cgroup ("4:memory:/a/b"). */
const ownPath = (controller: string): string => {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [, names = '', path = '/'] = line.split(':');
    if (names.split(',').includes(controller) || names === `name=${controller}`) return path.replace(/\/$/, '');
  }
  return '';
};

/** The lab's top folder in each hierarchy. */
const labFolders = (): string[] =>
  isVersion2()
    ? [join(ROOT, LAB)]
    : V1_CONTROLLERS.filter((c) => existsSync(join(ROOT, c))).map((c) => join(ROOT, c, ownPath(c), LAB));

const inheritCpuset = (folder: string): void => {
  for (const file of ['cpuset.cpus', 'cpuset.mems']) {
    writeFileSync(join(folder, file), readFileSync(join(folder, '..', file)));
  }
};

const V2_CONTROLLERS: ReadonlySet<string> = new Set(['cpu', 'memory', 'pids', 'cpuset']);
/** What the groups below a group of version 2 may have of what Kubernetes needs: as much as the machine gives it. */
const subtreeControl = (lab: string): string =>
  readFileSync(join(lab, 'cgroup.controllers'), 'utf8')
    .trim()
    .split(' ')
    .filter((name) => V2_CONTROLLERS.has(name))
    .map((name) => `+${name}`)
    .join(' ');

/**
 * Of the processor, the nodes together weigh as much as this many processes beside them. A new group weighs as much as one: the
 * command that disturbs the lab would leave all its nodes half a processor, and their tunnels would drop what they cannot carry.
 */
const WEIGHT_IN_PROCESSES = 32;

const setWeight = (lab: string): void => {
  const [file, ofOneProcess] = isVersion2() ? (['cpu.weight', 100] as const) : (['cpu.shares', 1024] as const);
  const path = join(lab, file);
  if (existsSync(path)) writeFileSync(path, String(WEIGHT_IN_PROCESSES * ofOneProcess));
};

/**
 * Where the kernel has real-time scheduling by groups (RT_GROUP_SCHED, version 1), a new group has no time for it: nodes get theirs as a
 * machine of their own has it. Microseconds of each second; all nodes and the command itself have to do with 950,000.
 */
const RT_RUNTIME_US = { lab: 900_000, mostOfNode: 110_000 } as const;

/** What each of so many nodes gets. */
export const realtimeOfNodeUs = (nodes: number): number =>
  Math.min(RT_RUNTIME_US.mostOfNode, Math.floor(RT_RUNTIME_US.lab / nodes));

const realtimeFile = (folder: string): string => join(folder, 'cpu.rt_runtime_us');

const setRealtime = (folder: string, runtimeUs: number): void => {
  if (existsSync(realtimeFile(folder))) writeFileSync(realtimeFile(folder), String(runtimeUs));
};

const subgroups = (folder: string): string[] =>
  readdirSync(folder)
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isDirectory());

const hasProcesses = (folder: string): boolean =>
  readFileSync(join(folder, 'cgroup.procs'), 'utf8') !== '' || subgroups(folder).some(hasProcesses);

/** The groups stay: a lab that starts has made them before it has a process. */
const releaseRealtime = (folder: string): void => {
  subgroups(folder).forEach(releaseRealtime);
  setRealtime(folder, 0);
};

const tryClaimRealtime = (lab: string): boolean => {
  try {
    setRealtime(lab, RT_RUNTIME_US.lab);
    return true;
  } catch (error) {
    // The kernel refuses more than there is.
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error;
    return false;
  }
};

/**
 * Real time for the lab, also what a lab holds whose command was killed. There is none where another lab runs, or where the command's own
 * group has none: nodes run without it, and their threads have a niceness only.
 */
const claimRealtime = (lab: string): boolean => {
  if (tryClaimRealtime(lab)) return true;
  subgroups(dirname(lab))
    .filter((other) => other !== lab && basename(other).startsWith('unbounded-') && !hasProcesses(other))
    .forEach(releaseRealtime);
  return tryClaimRealtime(lab);
};

/**
 * Makes the node's group in every hierarchy and returns the files into which its first process writes its pid.
 * @param nodes how many the lab has
 */
export const makeNodeCgroup = (node: string, nodes: number): string[] =>
  labFolders().map((lab) => {
    const folder = join(lab, node);
    mkdirSync(folder, { recursive: true });
    setWeight(lab);
    if (claimRealtime(lab)) setRealtime(folder, realtimeOfNodeUs(nodes));
    else
      console.log(
        `${node} has no real time (other groups have what ${realtimeFile(lab)} needs): its probes may be late`,
      );
    if (lab.includes('/cpuset/')) [lab, folder].forEach(inheritCpuset);
    if (isVersion2()) writeFileSync(join(lab, 'cgroup.subtree_control'), subtreeControl(lab));
    return join(folder, 'cgroup.procs');
  });

/** The group of one of our agents inside a node, in the hierarchy that lists its processes. */
const agentFolder = (node: string, app: string): string =>
  join(
    labFolders().find((folder) => isVersion2() || folder.includes('/pids/'))!,
    node,
    `agent-${app}`,
  );

/** Makes the agent's group; the agent's first process writes its pid into the file that is returned. */
export const makeAgentCgroup = (node: string, app: string): string => {
  const folder = agentFolder(node, app);
  mkdirSync(folder, { recursive: true });
  return join(folder, 'cgroup.procs');
};

/** Pids (of the machine) of all processes of an agent. */
export const agentPids = (node: string, app: string): number[] => {
  const file = join(agentFolder(node, app), 'cgroup.procs');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean).map(Number) : [];
};

const removeTree = (folder: string): void => {
  subgroups(folder).forEach(removeTree);
  // The kernel lets a removed group go later, and counts its time until then: the next lab would be refused its own.
  setRealtime(folder, 0);
  rmdirSync(folder);
};

/** Removes the lab's groups. Their processes are gone already; the kernel may take a moment to notice. */
export const removeCgroups = async (): Promise<void> => {
  for (const folder of labFolders()) {
    for (let left = 50; existsSync(folder); left--) {
      try {
        removeTree(folder);
      } catch (error) {
        if (left === 0) throw error;
        await delay(100);
      }
    }
  }
};
