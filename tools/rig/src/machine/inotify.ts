import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Instances of inotify(7): the kernel counts them by user over all namespaces (fs.inotify.max_user_instances, 128 by default), and
 * Kubernetes needs many. A kubelet that gets none does not start, and says so in its own log alone.
 */

/** A kubelet has six; kube-proxy, containerd and our agent have one each. */
const OF_NODE = 9;
/** Six of the API server and five of the controller manager. */
const OF_CONTROL_PLANE = 11;

const instancesOf = (nodes: number): number => OF_CONTROL_PLANE + nodes * OF_NODE;

/** System call inotify_init1(2). Elsewhere nothing is checked. */
const INOTIFY_INIT1: Partial<Record<NodeJS.Architecture, number>> = { x64: 294, arm64: 26 };

/** How many of so many instances this user gets now. The kernel shows no sum, and a PID namespace hides who has them: they are made. */
export const instancesFree = (most: number): number => {
  const call = INOTIFY_INIT1[process.arch];
  if (call === undefined) return most;
  const script = 'my $n = 0; $n++ while $n < $ARGV[1] && syscall($ARGV[0] + 0, 0) >= 0; print $n';
  const argv = ['-e', script, String(call), String(most)];
  return Number(execFileSync('perl', argv, { encoding: 'utf8' }));
};

const instanceLimit = (): number => Number(readFileSync('/proc/sys/fs/inotify/max_user_instances', 'utf8'));

/** @throws Error that says what is short, if so many nodes and a control plane would not get what they need */
export const checkInstances = (
  nodes: number,
  limit = instanceLimit(),
  free = instancesFree(instancesOf(nodes)),
): void => {
  const needed = instancesOf(nodes);
  if (free >= needed) return;
  throw new Error(
    `${nodes} Kubernetes nodes need ${needed} inotify instances, and ${free} of this user's ${limit} are free. Is another lab up? tools/lab down ` +
      `takes it away; sysctl -w fs.inotify.max_user_instances=${Math.max(512, limit - free + needed)} makes room for both`,
  );
};
