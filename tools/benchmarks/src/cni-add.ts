import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { CNI_CONF_FOLDER, CNI_CONF_NAME } from '@unbounded/config/ownership';
import { run } from '@unbounded/rig/command';
import type { LabLayout } from '@unbounded/rig/layout';
import { nodeJs, state } from '@unbounded/rig/paths';
import { inNode, onNode } from '@unbounded/rig/node';
import { median } from './rounds.ts';

/**
 * How long a node of the lab takes to attach a pod: the plugins of the node's list are called one after the other, as a
 * container runtime does (CNI 1.0.0, section 4), for a network namespace of their own, and all of it is taken away again.
 */

const PODS = Number(process.env['PODS'] ?? 60);
const WARM_UP = 5;
const CNI_BINARIES = '/opt/cni/bin';

type Plugin = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly capabilities?: Readonly<Record<string, boolean>>;
};

/** Capability arguments as containerd has them for a pod without annotations but kubelet's (CNI conventions, "runtimeConfig"). */
const CAPABILITY_ARGS = { 'io.kubernetes.cri.pod-annotations': { 'kubernetes.io/config.source': 'api' } };

const readPlugins = (): Plugin[] =>
  (JSON.parse(readFileSync(join(CNI_CONF_FOLDER, CNI_CONF_NAME), 'utf8')) as { plugins: Plugin[] }).plugins;

interface BenchPod {
  readonly name: string;
  readonly namespace: string;
  /** Absent: no object of the API server stands for it. */
  readonly uid?: string;
}

const argumentsOf = ({ name, namespace, uid }: BenchPod): string =>
  `IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${name}${uid === undefined ? '' : `;K8S_POD_UID=${uid}`}`;

const runtimeConfigOf = ({ capabilities = {} }: Plugin): object =>
  Object.fromEntries(Object.entries(CAPABILITY_ARGS).filter(([capability]) => capabilities[capability]));

const call = (plugin: Plugin, command: 'ADD' | 'DEL', pod: BenchPod, prevResult: unknown): unknown => {
  const config = {
    cniVersion: '1.0.0',
    name: 'unbounded',
    ...plugin,
    runtimeConfig: runtimeConfigOf(plugin),
    ...(prevResult === undefined ? {} : { prevResult }),
  };
  const { status, stdout, stderr, error } = spawnSync(join(CNI_BINARIES, plugin.type), {
    input: JSON.stringify(config),
    encoding: 'utf8',
    env: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: pod.name,
      CNI_NETNS: `/run/netns/${pod.name}`,
      CNI_IFNAME: 'eth0',
      CNI_PATH: CNI_BINARIES,
      CNI_ARGS: argumentsOf(pod),
      PATH: process.env['PATH'],
    },
  });
  if (status !== 0) throw new Error(`${command} of ${plugin.type}: ${error?.message ?? ''} ${stdout}${stderr}`);
  return stdout.trim() === '' ? undefined : JSON.parse(stdout);
};

interface Attached {
  readonly elapsedMs: number;
  readonly detach: () => void;
}

const attach = (plugins: readonly Plugin[], pod: BenchPod): Attached => {
  run(['ip', 'netns', 'add', pod.name]);
  const before = performance.now();
  let result: unknown;
  for (const plugin of plugins) result = call(plugin, 'ADD', pod, result) ?? result;
  return {
    elapsedMs: performance.now() - before,
    detach: () => {
      for (const plugin of plugins.toReversed()) call(plugin, 'DEL', pod, result);
      run(['ip', 'netns', 'del', pod.name]);
    },
  };
};

/** For pods without objects. */
const withoutObjects = (): BenchPod[] =>
  Array.from({ length: WARM_UP + PODS }, (_, index) => ({ name: `bench-${index}`, namespace: 'default' }));

const ON_NODE = '--on-node';
const IN_TURN = '--in-turn';

/** Of ADDs, in milliseconds. */
interface AddTimes {
  readonly median: number;
  /** The tenth percentile: what an ADD takes while nothing else of the machine runs. Its spread is a fraction of the median's. */
  readonly p10: number;
}

const readPods = (file: string): BenchPod[] => JSON.parse(readFileSync(file, 'utf8')) as BenchPod[];

/** On the node itself: prints {@link AddTimes}. */
const measure = (): void => {
  const plugins = readPlugins();
  const pods = withoutObjects();
  // The node is in use: what stands for the first pod stays while others come and go.
  const first = attach(plugins, pods[0]!);
  const times = pods.slice(1).map((pod) => {
    const { elapsedMs, detach } = attach(plugins, pod);
    detach();
    return elapsedMs;
  });
  first.detach();
  const sorted = times.slice(WARM_UP).toSorted((a, b) => a - b);
  const ofAll: AddTimes = { median: median(sorted), p10: sorted[Math.floor(sorted.length / 10)]! };
  console.log(JSON.stringify(ofAll));
};

/** On the node itself: for each line that comes, an ADD, its milliseconds as a line, and all is as before. */
const measureInTurn = async (file: string): Promise<void> => {
  const plugins = readPlugins();
  const [stays, ...others] = readPods(file);
  const first = attach(plugins, stays!);
  let turn = 0;
  for await (const _ of createInterface({ input: process.stdin })) {
    const { elapsedMs, detach } = attach(plugins, others[turn++ % others.length]!);
    detach();
    console.log(elapsedMs);
  }
  first.detach();
};

export interface AddsInTurn {
  /** One ADD, in milliseconds; behind it nothing of it is left. */
  next(): Promise<number>;
  end(): Promise<void>;
}

/** ADDs of a node, one at a time and when they are asked for. @param file of pods with objects (JSON), of which no other node uses any */
export const startAdds = (node: string, file: string): AddsInTurn => {
  const [program, ...args] = [...inNode(node), nodeJs, import.meta.filename, IN_TURN, file];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = once(child, 'exit');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async next() {
      child.stdin.write('\n');
      const line = await lines.next();
      if (line.done) throw new Error(`the ADDs of ${node} have ended`);
      return Number(line.value);
    },
    async end() {
      child.stdin.end();
      await ended;
    },
  };
};

/** A worker of the lab that is up. @throws Error when none is */
const readLab = (): { layout: LabLayout; node: string } => {
  const file = join(state, 'layout.json');
  if (!existsSync(file)) throw new Error('there is no lab: run tools/lab up');
  const layout = JSON.parse(readFileSync(file, 'utf8')) as LabLayout;
  return { layout, node: (layout.nodes.find(({ role }) => role === 'worker') ?? layout.nodes[0]!).name };
};

/** Two workers of the lab that is up. @throws Error when there are not as many */
export const readWorkers = (): { layout: LabLayout; workers: readonly [string, string] } => {
  const { layout } = readLab();
  const [one, other] = layout.nodes.filter(({ role }) => role === 'worker').map(({ name }) => name);
  if (one === undefined || other === undefined) throw new Error('the lab needs two workers: tools/lab down, then up');
  return { layout, workers: [one, other] };
};

/** How long an ADD takes. */
const measureAdd = (node: string): AddTimes =>
  JSON.parse(onNode(node, nodeJs, import.meta.filename, ON_NODE)) as AddTimes;

if (process.argv[2] === ON_NODE) measure();
else if (process.argv[2] === IN_TURN) await measureInTurn(process.argv[3]!);
else if (process.argv[1] === import.meta.filename) {
  const { node } = readLab();
  const times = measureAdd(node);
  console.log(
    `CNI ADD on ${node}, of ${PODS} pods (ms): median ${times.median.toFixed(2)}, tenth percentile ${times.p10.toFixed(2)}`,
  );
}
