import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type LabLayout, namespaceOf } from '../layout/layout.ts';
import { makeNodeCgroup } from '../machine/cgroups.ts';
import { run, tryRun } from '../machine/command.ts';
import { logTail, pidOf, startDaemon } from '../machine/daemon.ts';
import { checkout, cniPlugins, nodeDir, state } from '../machine/paths.ts';

/** One node in namespaces of its own, with its own view of the file system. What runs in it is for the substrate to say. */

/** Folders that a node mounts its own upon; each must exist on the machine, so the missing ones are made and noted. */
const MOUNT_POINTS = [
  '/var/lib/kubelet',
  '/var/lib/containerd',
  '/var/lib/cni',
  '/var/lib/unbounded',
  '/var/lib/tailscale-cni',
  '/var/log/pods',
  '/var/log/containers',
  '/etc/cni',
  '/etc/wireguard',
  '/etc/containerd',
  '/opt/cni',
] as const;
export const madeFoldersFile = join(state, 'made-folders');

/** Makes the missing mount points (deepest last) and notes them for `down`. */
export const makeMountPoints = (): void => {
  const made: string[] = existsSync(madeFoldersFile)
    ? readFileSync(madeFoldersFile, 'utf8').split('\n').filter(Boolean)
    : [];
  for (const folder of MOUNT_POINTS) {
    const missing: string[] = [];
    for (let at: string = folder; !existsSync(at); at = join(at, '..')) missing.unshift(at);
    made.push(...missing);
    writeFileSync(madeFoldersFile, made.join('\n')); // noted before it is made: an interrupted `up` leaves nothing unknown
    mkdirSync(folder, { recursive: true });
  }
};

const daemonName = (node: string): string => `node-${node}`;

export const isRunning = (node: string): boolean => pidOf(daemonName(node)) !== undefined;

/** Starts a node of the lab; a running one is left alone. @param env what node-init.sh needs beside what every node has */
export const startNode = ({ nodes }: LabLayout, node: string, env: Readonly<Record<string, string>> = {}): void => {
  if (isRunning(node)) return;
  mkdirSync(nodeDir(node), { recursive: true });
  const joinGroup = makeNodeCgroup(node, nodes.length)
    .map((file) => `echo $$ >${file};`)
    .join(' ');
  const unshare = 'unshare --mount --uts --ipc --pid --cgroup --fork --kill-child --mount-proc';
  const script = `${joinGroup} exec nsenter --net=/run/netns/${namespaceOf(node)} -- ${unshare} ${join(checkout, 'tools/rig/node-init.sh')}`;
  startDaemon(daemonName(node), ['bash', '-c', script], {
    env: {
      PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
      NODE: node,
      DIR: nodeDir(node),
      CNI_PLUGINS: cniPlugins,
      ...env,
    },
  });
};

/** Pid (of the machine) of the node's first process. @throws Error when the node does not run */
export const initPid = (node: string): number => {
  const outer = pidOf(daemonName(node));
  const children = outer === undefined ? '' : readFileSync(`/proc/${outer}/task/${outer}/children`, 'utf8');
  const pid = Number(children.trim().split(' ')[0]);
  if (!pid) throw new Error(`node ${node} does not run:\n${logTail(daemonName(node))}`);
  return pid;
};

/** Where a file of the node's own folders is on the machine. */
export const nodeFile = (node: string, path: string): string => join(nodeDir(node), 'root', path);

/** Prefix that runs a command as if logged in to the node. */
export const inNode = (node: string): string[] => [
  'nsenter',
  '-t',
  String(initPid(node)),
  '-m',
  '-u',
  '-i',
  '-n',
  '-p',
  '-C',
  '--',
];

export const onNode = (node: string, ...argv: string[]): string => run([...inNode(node), ...argv]);
export const tryOnNode = (node: string, ...argv: string[]): string | undefined => tryRun([...inNode(node), ...argv]);
