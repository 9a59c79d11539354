import { setTimeout as delay } from 'node:timers/promises';
import { REALTIME_V8_OPTION } from '@unbounded/config/node-command';
import type { LabLayout, LabNode } from '../layout/layout.ts';
import type { LabOptions } from '../layout/options.ts';
import { agentPids, makeAgentCgroup } from '../machine/cgroups.ts';
import { startDaemon } from '../machine/daemon.ts';
import { appBundle, binary, nodeJs } from '../machine/paths.ts';
import { inNode } from '../node/node.ts';
import { caFile, podStart } from './tailnet-place.ts';
import { servicesOf } from '../layout/layout.ts';
import { AGGREGATOR, NODE_AGENT, statusTokenFile, TAILNET_AGENT } from './tokens.ts';

/** The agents, our apps on every node, as processes inside it. */

const STOP_DEADLINE_MS = 15_000;
export const NODE_APPS = ['node-keeper', NODE_AGENT] as const;
/** Of a lab with a tailnet: the keeper of devices, which is the program of the other one, and the agent for them. */
const TAILNET_APPS = ['tailnet-devices', TAILNET_AGENT] as const;
export type NodeApp = (typeof NODE_APPS)[number] | (typeof TAILNET_APPS)[number];
/** Those of the lab, in the order in which they start. */
export const nodeAppsOf = ({ options }: LabLayout): readonly NodeApp[] =>
  options.tailnet ? [...TAILNET_APPS, ...NODE_APPS] : NODE_APPS;

const agentDaemon = (node: string, app: NodeApp): string => `${app}-${node}`;
export const agentLog = agentDaemon;

/** Those that read objects. */
export type ReadingApp = typeof NODE_AGENT | typeof TAILNET_AGENT;

/** Where a node's agents read objects from. */
export interface ObjectSource {
  /** Makes what the flags name. */
  readonly prepare: (layout: LabLayout, node: LabNode, app: ReadingApp) => Promise<void>;
  /** Flags of the agent. */
  readonly flags: (node: LabNode, app: ReadingApp) => readonly string[];
}

const agentFlags = (source: ObjectSource, { dataplane }: LabOptions, node: LabNode): string[] => [
  ...['--node-name', node.name],
  ...['--health-address', node.internalIps.join(',')],
  ...source.flags(node, NODE_AGENT),
  // Not said where it is the default: a test may then say otherwise by environment.
  ...(dataplane === 'ebpf' ? [] : ['--dataplane', dataplane]),
];

const reporting = ({ name }: LabNode): NodeJS.ProcessEnv => ({
  UNBOUNDED_STATUS_SERVICE: AGGREGATOR,
  UNBOUNDED_STATUS_TOKEN_FILE: statusTokenFile(name),
});

const RUN_DIR = '/run/unbounded/tailnet';

const keeperOfDevicesFlags = (): string[] => [
  ...['--tailnet-run-dir', RUN_DIR, '--tailnet-ca-file', caFile],
  ...['--pod-start', podStart, '--tailnet-device', binary('tailnet-device')],
];

const tailnetFlags = (source: ObjectSource, layout: LabLayout, node: LabNode): string[] => [
  ...['--node-name', node.name, '--run-dir', RUN_DIR],
  ...['--health-address', node.internalIps.join(',')],
  ...[
    '--cluster-cidrs',
    servicesOf(layout)
      .map(({ cidr }) => cidr)
      .join(','),
  ],
  ...source.flags(node, TAILNET_AGENT),
];

const flagsOf = (
  source: ObjectSource,
  layout: LabLayout,
  node: LabNode,
): Readonly<Record<NodeApp, () => string[]>> => ({
  'node-keeper': () => ['--wireguard-go', binary('wireguard-go')],
  [NODE_AGENT]: () => agentFlags(source, layout.options, node),
  'tailnet-devices': keeperOfDevicesFlags,
  [TAILNET_AGENT]: () => tailnetFlags(source, layout, node),
});

/** The program that the app is. */
const programOf = (app: NodeApp): string => (app === 'tailnet-devices' ? 'node-keeper' : app);

/** Options of V8 beside those of tools/node. */
const v8OptionsOf = (app: NodeApp): readonly string[] => (app === NODE_AGENT ? [REALTIME_V8_OPTION] : []);

interface Start {
  readonly node: LabNode;
  readonly app: NodeApp;
  readonly env?: NodeJS.ProcessEnv;
}

/** Starts an agent inside its node, in a cgroup of its own; a running one is left alone. */
export const startAgentFrom = async (
  source: ObjectSource,
  layout: LabLayout,
  { node, app, env = {} }: Start,
): Promise<void> => {
  if (agentPids(node.name, app).length > 0) return;
  if (app === NODE_AGENT || app === TAILNET_AGENT) await source.prepare(layout, node, app);
  const flags = flagsOf(source, layout, node)[app]();
  // The group is joined before the node's namespaces are entered: inside them its path is another.
  const group = makeAgentCgroup(node.name, app);
  const command = [...inNode(node.name), nodeJs, ...v8OptionsOf(app), appBundle(programOf(app)), ...flags];
  startDaemon(agentDaemon(node.name, app), ['bash', '-c', `echo $$ >${group}; exec "$@"`, app, ...command], {
    // By environment: versions that know no egress addresses, or report to nobody, pass over it.
    env: {
      ...{ ...process.env, UNBOUNDED_EGRESS: 'On', ...reporting(node) },
      ...(layout.options.lan ? { UNBOUNDED_L2: 'On' } : {}),
      ...(layout.options.tailnet && app === NODE_AGENT ? { UNBOUNDED_TAILNET: 'true' } : {}),
      ...env,
    },
  });
};

/** Starts these apps on every node. */
export const startAgentsFrom = async (
  source: ObjectSource,
  layout: LabLayout,
  apps: readonly NodeApp[],
): Promise<void> => {
  for (const app of apps) for (const node of layout.nodes) await startAgentFrom(source, layout, { node, app });
};

/** It stands still until the result is called. */
export const freezeAgent = (node: string, app: NodeApp): (() => Promise<void>) => {
  const signal = (name: NodeJS.Signals): void => {
    for (const pid of agentPids(node, app)) process.kill(pid, name);
  };
  signal('SIGSTOP');
  return async () => {
    signal('SIGCONT');
    await delay(200);
    signal('SIGCONT'); // nsenter, which the agent runs behind, stops when that has stopped
  };
};

/** Ends an agent: SIGTERM and a wait, or SIGKILL for every process of its cgroup at once. */
export const stopAgent = async (
  node: string,
  app: NodeApp,
  signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM',
): Promise<void> => {
  for (const end = Date.now() + STOP_DEADLINE_MS; ;) {
    const pids = agentPids(node, app);
    if (pids.length === 0) return;
    const late = Date.now() > end;
    for (const pid of pids) {
      try {
        process.kill(pid, late ? 'SIGKILL' : signal);
      } catch {
        // it ended between the list and the signal
      }
    }
    await delay(100);
  }
};
