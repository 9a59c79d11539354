/**
 * The namespaces of a test run. Everything that a layer starts lives in one PID namespace, which the kernel ends with its first process;
 * mounts, network namespaces and links that specs make are in a mount and a network namespace that end with it. So nothing of a run is
 * left however its runner ends (SIGKILL too) but files of a lab and its empty control groups, which the next lab removes, and a port on
 * loopback is nobody else's.
 */

/**
 * The first process of the namespaces: prepares them, runs the command, and reaps what is orphaned in them. /run, where ip-netns(8) mounts
 * its namespaces and where the list of name servers may be, and temporary files are in memory (these not below /run, which a lab's nodes
 * have for themselves); eBPF objects are pinned in a file system of the run's own.
 */
const INIT = `
set -e
ip link set lo up
resolver=$(readlink -f /etc/resolv.conf || true) servers=$(cat /etc/resolv.conf 2>/dev/null || true)
mount -t tmpfs -o mode=755 unbounded-tests /run
case $resolver in /run/*) mkdir -p "$(dirname "$resolver")"; printf '%s\n' "$servers" >"$resolver" ;; esac
mkdir -p /run/lock /tmp/unbounded-tests
mount -t tmpfs -o mode=1777 unbounded-tests /tmp/unbounded-tests
export TMPDIR=/tmp/unbounded-tests
[ ! -d /sys/fs/bpf ] || mount -t bpf bpf /sys/fs/bpf
set +e
"$@"
status=$?
exit $status
`;

export interface SandboxOptions {
  /** A network namespace of its own, with loopback alone. Without it the command reaches package registries. */
  readonly ownNetwork: boolean;
}

/** What runs a command in namespaces of its own; it and all that it started are killed when the caller's thread ends. */
export const inSandbox = (command: readonly string[], { ownNetwork }: SandboxOptions): string[] => [
  ...['setpriv', '--pdeathsig', 'KILL'],
  ...['unshare', '--pid', '--mount', '--ipc', ...(ownNetwork ? ['--net'] : []), '--propagation', 'private'],
  ...['--fork', '--kill-child=KILL', '--mount-proc'],
  ...['bash', '-c', INIT, 'tests', ...command],
];
