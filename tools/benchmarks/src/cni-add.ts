import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CNI_CONF_FOLDER, CNI_CONF_NAME } from '@unbounded/config/ownership';
import { run } from '@unbounded/rig/command';
import type { LabLayout } from '@unbounded/rig/layout';
import { nodeJs, state } from '@unbounded/rig/paths';
import { onNode } from '@unbounded/rig/node';
import { median } from './rounds.ts';

/**
 * How long a node of the lab takes to attach a pod: the plugins of the node's list are called one after the other, as a
 * container runtime does (CNI 1.0.0, section 4), for a network namespace of their own, and all of it is taken away again.
 */

const PODS = Number(process.env['PODS'] ?? 60);
const WARM_UP = 5;
const CNI_BINARIES = '/opt/cni/bin';

type Plugin = Readonly<Record<string, unknown>> & { readonly type: string };

const readPlugins = (): Plugin[] =>
  (JSON.parse(readFileSync(join(CNI_CONF_FOLDER, CNI_CONF_NAME), 'utf8')) as { plugins: Plugin[] }).plugins;

const call = (plugin: Plugin, command: 'ADD' | 'DEL', pod: string, prevResult: unknown): unknown => {
  const config = {
    cniVersion: '1.0.0',
    name: 'unbounded',
    ...plugin,
    ...(prevResult === undefined ? {} : { prevResult }),
  };
  const { status, stdout, stderr, error } = spawnSync(join(CNI_BINARIES, plugin.type), {
    input: JSON.stringify(config),
    encoding: 'utf8',
    env: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: pod,
      CNI_NETNS: `/run/netns/${pod}`,
      CNI_IFNAME: 'eth0',
      CNI_PATH: CNI_BINARIES,
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}`,
      PATH: process.env['PATH'],
    },
  });
  if (status !== 0) throw new Error(`${command} of ${plugin.type}: ${error?.message ?? ''} ${stdout}${stderr}`);
  return stdout.trim() === '' ? undefined : JSON.parse(stdout);
};

/** Milliseconds of one ADD. */
const attach = (plugins: readonly Plugin[], pod: string): number => {
  run(['ip', 'netns', 'add', pod]);
  try {
    const before = performance.now();
    let result: unknown;
    for (const plugin of plugins) result = call(plugin, 'ADD', pod, result) ?? result;
    const elapsed = performance.now() - before;
    for (const plugin of plugins.toReversed()) call(plugin, 'DEL', pod, result);
    return elapsed;
  } finally {
    run(['ip', 'netns', 'del', pod]);
  }
};

/** On the node itself: prints the median. */
const measure = (): void => {
  const plugins = readPlugins();
  const times = Array.from({ length: WARM_UP + PODS }, (_, index) => attach(plugins, `bench-${index}`));
  console.log(median(times.slice(WARM_UP)).toFixed(2));
};

const main = (): void => {
  const file = join(state, 'layout.json');
  if (!existsSync(file)) throw new Error('there is no lab: run tools/lab up');
  const { nodes } = JSON.parse(readFileSync(file, 'utf8')) as LabLayout;
  const node = nodes.find(({ role }) => role === 'worker') ?? nodes[0]!;
  const printed = onNode(node.name, nodeJs, import.meta.filename, '--on-node');
  console.log(`CNI ADD on ${node.name}, median of ${PODS} pods (ms): ${printed.trim()}`);
};

if (process.argv.includes('--on-node')) measure();
else main();
