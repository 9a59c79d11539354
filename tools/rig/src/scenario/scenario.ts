import { execFileSync, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { type NodeApp, stopAgent } from '../apps/agents.ts';
import { inNamespace, run, runAsync, tryRun } from '../machine/command.ts';
import { kubectl } from '../kubernetes/control-plane.ts';
import { podCommand, readPods } from '../substrate/bare/pods.ts';
import { type LabLayout, layoutOf, namespaceOf } from '../layout/layout.ts';
import { initPid, inNode, onNode, tryOnNode } from '../node/node.ts';
import type { Protocol } from '../layout/options.ts';
import { binary } from '../machine/paths.ts';
import type { Pod } from '../checks/test-pod.ts';
import { inPod, probePods } from '../substrate/probes.ts';
import { startAgent } from '../substrate/agents.ts';

/** What tests do with a lab: steps with their names, and looks at what the kernel holds. */

export const twoSites = (protocol: Protocol = 'Auto'): LabLayout => layoutOf({ protocol });

/** What a command that does not end by itself prints on a node within some seconds. */
export const onNodeFor = (node: string, seconds: number, ...argv: string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const [program, ...args] = [...inNode(node), 'timeout', String(seconds), ...argv];
    const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', reject);
    child.on('close', () => resolve(Buffer.concat(chunks).toString()));
  });

export const podOn = async (layout: LabLayout, node: string): Promise<Pod> => {
  const pod = (await probePods(layout)).find((candidate) => candidate.node === node);
  if (!pod) throw new Error(`no test pod on ${node}`);
  return pod;
};

export interface FlowReport {
  readonly sent: number;
  readonly received: number;
  readonly lost: number;
  readonly sendErrors: number;
  readonly largestGapMillis: number;
  readonly losses: readonly { readonly firstNumber: number; readonly lastNumber: number; readonly atMillis: number }[];
  /** The wall clock at which `atMillis` is 0. */
  readonly startedUnixMillis: number;
}

const PER_SECOND = 1000;
/** Until a flow is established, before anything disturbs it. */
const ESTABLISHING_MS = 3000;

/**
 * Runs the probe in a pod's network, and not by kubectl exec: what is measured is the network, and the API server may be
 * away meanwhile.
 */
export const probeFrom = async (pod: Pod, args: readonly string[]): Promise<string> =>
  await runAsync(commandInPod(pod, args));

/** Numbered datagrams from one pod to another and back, while something happens. */
export const flowDuring = async (
  ends: {
    readonly from: Pod;
    readonly to: Pick<Pod, 'ip'>;
    readonly seconds: number;
    readonly perSecond?: number;
  },
  disturb: () => Promise<void>,
): Promise<FlowReport> => {
  const to = ends.to.ip.includes(':') ? `[${ends.to.ip}]` : ends.to.ip;
  const args = ['flow', `${to}:9000`, String(ends.perSecond ?? PER_SECOND), String(ends.seconds)];
  const report = probeFrom(ends.from, args);
  await delay(ESTABLISHING_MS);
  await disturb();
  return JSON.parse(await report) as FlowReport;
};

/** A flow that goes on until it is ended. */
export interface RunningFlow {
  end(): Promise<FlowReport>;
}

const LONGEST_FLOW_SECONDS = 3600;

/** Numbered datagrams from one pod to another and back. Resolves once the flow is established. */
export const startFlow = async (
  from: Pod,
  to: { readonly ip: string; readonly port?: number },
  perSecond = PER_SECOND,
): Promise<RunningFlow> => {
  const host = to.ip.includes(':') ? `[${to.ip}]` : to.ip;
  const [program, ...args] = commandInPod(from, [
    ...['flow', `${host}:${to.port ?? 9000}`, String(perSecond), String(LONGEST_FLOW_SECONDS), 'until-eof'],
  ]);
  const child = spawn(program!, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
  const closed = new Promise<void>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => resolve());
  });
  closed.catch(() => undefined); // told by end()
  await delay(ESTABLISHING_MS);
  return {
    async end() {
      child.stdin.end();
      await closed;
      return JSON.parse(Buffer.concat(chunks).toString()) as FlowReport;
    },
  };
};

/** Of a process of a test pod, in its node's numbers; `pause` is the one that its sandbox stands by. */
export const pidOfPod = (pod: Pick<Pod, 'name' | 'node' | 'ip'>, program: 'probe' | 'pause' = 'probe'): string => {
  const pids = onNode(pod.node, 'pgrep', '-x', program).trim().split('\n');
  const pid = pids.find((candidate) =>
    tryOnNode(pod.node, 'nsenter', '-t', candidate, '-n', 'ip', 'addr')?.includes(` ${pod.ip}/`),
  );
  if (pid === undefined) throw new Error(`no process of pod ${pod.name} on ${pod.node}`);
  return pid;
};

/** Whether it is a pod of a lab without Kubernetes. */
const isNamespace = (pod: Pod): boolean => readPods().some(({ name }) => name === pod.name);

/** The probe, run in a pod's network namespace from its node. */
export const commandInPod = (pod: Pod, args: readonly string[]): string[] =>
  isNamespace(pod)
    ? podCommand(pod, [binary('probe'), ...args])
    : [...inNode(pod.node), 'nsenter', '-t', pidOfPod(pod), '-n', '-m', '--', '/probe', ...args];

/** What enters a pod's network for a program of the machine. */
export const inPodNetwork = (pod: Pod): string[] => [...inNode(pod.node), 'nsenter', '-t', pidOfPod(pod), '-n'];

/** A program of the machine in a pod's network; undefined when it fails. */
export const tryInPod = (pod: Pod, ...argv: string[]): string | undefined => tryRun([...inPodNetwork(pod), ...argv]);

/** Kills every process of an agent's cgroup at once and starts it again. */
export const killAgent = async (
  layout: LabLayout,
  node: string,
  app: NodeApp,
  env: NodeJS.ProcessEnv = {},
): Promise<void> => {
  await stopAgent(node, app, 'SIGKILL');
  await startAgent(
    layout,
    layout.nodes.find(({ name }) => name === node)!,
    app,
    env,
  );
};

/** Waits until something holds and says how long that took, in milliseconds. */
export const timeUntil = async (
  what: string,
  holds: () => Promise<boolean> | boolean,
  limitMs: number,
): Promise<number> => {
  const start = Date.now();
  while (!(await holds())) {
    if (Date.now() - start > limitMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await delay(50);
  }
  return Date.now() - start;
};

/** Waits until a text matches. @throws Error with what stands there instead, when the time is over */
export const timeUntilMatch = async (
  what: string,
  read: () => Promise<string>,
  pattern: RegExp,
  limitMs: number,
): Promise<number> => {
  let last = '';
  const matches = async (): Promise<boolean> => pattern.test((last = await read()));
  return timeUntil(what, matches, limitMs).catch((error: Error) => {
    throw new Error(`${error.message}; it says ${last}`);
  });
};

interface Counters {
  readonly bytes: number;
  readonly dropped: number;
}
interface LinkCounters {
  readonly ifname: string;
  readonly stats64: { readonly rx: Counters; readonly tx: Counters };
}

/** What the devices of a network have counted, or one of them. @param enter what enters the network */
export const linkCounters = (enter: readonly string[], ...device: readonly string[]): LinkCounters[] =>
  JSON.parse(run([...enter, 'ip', '-j', '-s', 'link', 'show', ...device])) as LinkCounters[];

export const nodeCondition = async (
  layout: LabLayout,
  node: string,
  type: string,
): Promise<{ status: string; reason: string; message: string } | undefined> => {
  const { status } = JSON.parse(await kubectl(layout, ['get', 'node', node, '-o', 'json'])) as {
    status: { conditions: { type: string; status: string; reason: string; message: string }[] };
  };
  return status.conditions.find((condition) => condition.type === type);
};

/** Starts tcpdump in a namespace; the function that is returned ends it and gives the packets (pcap file, any size). */
export const startCapture = (namespace: string, device: string, file: string): Promise<() => Promise<void>> =>
  startTcpdump(namespace, ['-i', device, '-w', file, '-s', '0']);

/** The same with other options, and a filter. */
export const startTcpdump = (namespace: string, words: readonly string[]): Promise<() => Promise<void>> =>
  capture(inNamespace(namespace), words);

/** The same in the network of a pod. */
export const captureInPod = (
  pod: Pod,
  file: string,
  device = 'eth0',
  filter: readonly string[] = [],
): Promise<() => Promise<void>> =>
  capture(
    ['nsenter', `--net=/proc/${initPid(pod.node)}/root/proc/${pidOfPod(pod)}/ns/net`, '--'],
    ['-i', device, '-w', file, '-s', '0', ...filter],
  );

const capture = async (prefix: readonly string[], words: readonly string[]): Promise<() => Promise<void>> => {
  const [program = 'tcpdump', ...args] = [...prefix, 'tcpdump', '-U', '-B', '16384', ...words];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', () => reject(new Error('tcpdump ended')));
    child.stderr.on('data', (text: Buffer) => text.includes('listening on') && resolve());
  });
  return async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGINT');
    await ended;
  };
};

export { inPod, namespaceOf };

/** Everything of the machine that a lab could leave behind, as sorted lists. */
export const machineState = (): Record<string, string[]> => {
  const lines = (command: string): string[] =>
    execFileSync('bash', ['-c', command], { encoding: 'utf8' }).split('\n').filter(Boolean).sort();
  return {
    // By program, not by pid; what has nothing to do with labs (other shells) may come and go.
    processes: lines(
      "ps -eo stat=,comm= | grep -v '^Z' | awk '{print $2}' | grep -xE 'etcd|kube.*|containerd.*|coredns|probe|wireguard-go|node-init.sh|tcpdump' || true",
    ),
    namespaces: lines('ls /run/netns 2>/dev/null || true'),
    mounts: lines("awk '{print $2, $3}' /proc/self/mounts"),
    cgroups: lines("find /sys/fs/cgroup -type d -path '*unbounded-*lab*'"),
    links: lines('ip -o link | cut -d: -f2'),
    rules: lines('nft list ruleset'),
    sysctls: lines(
      'sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter net.ipv6.conf.all.forwarding vm.overcommit_memory kernel.panic',
    ),
    files: lines(
      'ls -d /var/lib/kubelet /var/lib/containerd/* /var/lib/cni /var/lib/unbounded /run/unbounded /etc/cni /etc/wireguard /opt/cni /var/log/pods /run/netns 2>/dev/null || true',
    ),
  };
};
