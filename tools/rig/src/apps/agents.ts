import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { agentPids, makeAgentCgroup } from '../machine/cgroups.ts';
import { inNamespace } from '../machine/command.ts';
import { labPki } from '../substrate/cluster/control-plane.ts';
import { logTail, pidOf, startDaemon } from '../machine/daemon.ts';
import { hasWireGuard } from '../machine/kernel.ts';
import { apiServerUrl, hasRelay, type LabLayout, type LabNode, namespaceOf } from '../layout/layout.ts';
import { dnsFlags } from '../underlay/names.ts';
import { inNode } from '../node/node.ts';
import { appBundle, binary, checkout, controlPlaneDir, nodeDir, nodeJs, state } from '../machine/paths.ts';
import { kubeconfigOf } from '../substrate/cluster/pki.ts';
import { agentTokenFile, CONTROLLERS, controllerTokenFile, NODE_AGENT } from './tokens.ts';

/** Our own apps as processes: the controllers beside the API server, the agents inside the nodes. */

const REPLICAS = [1, 2] as const;
const STOP_DEADLINE_MS = 15_000;
const HEALTH_PORT_FIRST = 9101;

export const NODE_APPS = ['node-keeper', NODE_AGENT] as const;
export type NodeApp = (typeof NODE_APPS)[number];

/** What runs on every node. Without Kubernetes nothing that has nothing to do: an emulated machine feels each process. */
export const nodeAppsOf = (layout: LabLayout): readonly NodeApp[] =>
  layout.options.fabric && hasWireGuard() && !hasRelay(layout) ? [NODE_AGENT] : NODE_APPS;

const controllerName = (app: string, replica: number): string => `${app}-${replica}`;

/** Log and process names of the controllers' replicas. */
export const controllerDaemons = (): string[] =>
  CONTROLLERS.flatMap((app) => REPLICAS.map((replica) => controllerName(app, replica)));

const waitForFile = async (file: string, deadlineMs: number): Promise<void> => {
  for (const end = Date.now() + deadlineMs; !existsSync(file);) {
    if (Date.now() > end)
      throw new Error(`${file} did not appear in ${deadlineMs / 1000} s; the attendant says:\n${logTail('attendant')}`);
    await delay(50);
  }
};

/** Plays cloud provider and token renewal for as long as the lab runs. */
export const startAttendant = (layout: LabLayout): void => {
  if (pidOf('attendant') !== undefined) return;
  const file = join(state, 'layout.json');
  writeFileSync(file, JSON.stringify(layout));
  startDaemon('attendant', [
    ...inNamespace(namespaceOf(layout.controlPlane.name)),
    nodeJs,
    join(checkout, 'tools/rig/src/substrate/cluster/attendant.ts'),
    file,
  ]);
};

/** Starts one replica of a controller. */
export const startController = async (
  layout: LabLayout,
  app: (typeof CONTROLLERS)[number],
  replica: number,
): Promise<void> => {
  const name = controllerName(app, replica);
  if (pidOf(name) !== undefined) return;
  await waitForFile(controllerTokenFile(app), 30_000);
  const kubeconfig = join(controlPlaneDir, `${app}.kubeconfig`);
  const server = apiServerUrl(layout, layout.controlPlane.site);
  writeFileSync(kubeconfig, kubeconfigOf(labPki(), server, { tokenFile: controllerTokenFile(app) }), { mode: 0o600 });
  const port = HEALTH_PORT_FIRST + 2 * CONTROLLERS.indexOf(app) + replica - 1;
  startDaemon(
    name,
    [
      ...inNamespace(namespaceOf(layout.controlPlane.name)),
      nodeJs,
      appBundle(app),
      '--kubeconfig',
      kubeconfig,
      '--health-port',
      String(port),
      ...(app === 'gateway-health' ? dnsFlags(layout) : []),
    ],
    { env: { ...process.env, POD_NAME: name } },
  );
};

export const startControllers = async (layout: LabLayout): Promise<void> => {
  for (const app of CONTROLLERS) for (const replica of REPLICAS) await startController(layout, app, replica);
};

const agentDaemon = (node: string, app: NodeApp): string => `${app}-${node}`;
export const agentLog = agentDaemon;

/** What agents read objects from where there is no Kubernetes. */
export const objectsFolder = join(state, 'objects');

const agentArguments = (layout: LabLayout, node: LabNode, app: NodeApp): string[] => {
  if (app === 'node-keeper') return ['--wireguard-go', binary('wireguard-go')];
  const { dataplane, fabric } = layout.options;
  return [
    ...['--node-name', node.name],
    ...['--health-address', node.internalIps.join(',')],
    ...(fabric ? ['--objects', objectsFolder] : ['--kubeconfig', join(nodeDir(node.name), `${NODE_AGENT}.kubeconfig`)]),
    // Not said where it is the default: a test may then say otherwise by environment.
    ...(dataplane === 'ebpf' ? [] : ['--dataplane', dataplane]),
  ];
};

/** Starts an agent inside its node, in a cgroup of its own; a running one is left alone. */
export const startAgent = async (
  layout: LabLayout,
  node: LabNode,
  app: NodeApp,
  env: NodeJS.ProcessEnv = {},
): Promise<void> => {
  if (agentPids(node.name, app).length > 0) return;
  if (app === NODE_AGENT && !layout.options.fabric) {
    await waitForFile(agentTokenFile(node.name), 60_000);
    const config = kubeconfigOf(labPki(), apiServerUrl(layout, node.site), { tokenFile: agentTokenFile(node.name) });
    writeFileSync(join(nodeDir(node.name), `${NODE_AGENT}.kubeconfig`), config, { mode: 0o600 });
  }
  // The group is joined before the node's namespaces are entered: inside them its path is another.
  const group = makeAgentCgroup(node.name, app);
  const command = [...inNode(node.name), nodeJs, appBundle(app), ...agentArguments(layout, node, app)];
  startDaemon(agentDaemon(node.name, app), ['bash', '-c', `echo $$ >${group}; exec "$@"`, app, ...command], {
    env: { ...process.env, ...env },
  });
};

export const startAgents = async (layout: LabLayout): Promise<void> => {
  for (const app of nodeAppsOf(layout)) for (const node of layout.nodes) await startAgent(layout, node, app);
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
