/** The command behind tools/lab. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  agentLog,
  controllerDaemons,
  NODE_APPS,
  type NodeApp,
  startAgent,
  startController,
  stopAgent,
} from './agents.ts';
import { agentPids } from './cgroups.ts';
import { inNamespace } from './command.ts';
import { kubectlCommand, startApiServer, stopApiServer } from './control-plane.ts';
import { pidOf, stopDaemon } from './daemon.ts';
import { down } from './down.ts';
import { FAMILIES } from './addresses.ts';
import {
  AGENTS,
  DATAPLANES,
  DEFAULTS,
  type LabLayout,
  type LabOptions,
  layoutOf,
  namespaceOf,
  PROTOCOLS,
  TOPOLOGIES,
  WAN,
} from './layout.ts';
import { inNode } from './node.ts';
import { logFile, nodeDir, state } from './paths.ts';
import { drawTopology, whatNext } from './picture.ts';
import { POD_APPS, type PodApp, podLogs, restartPods, rollbackPods, upgradePods } from './pods.ts';
import { CONTROLLERS, NAMESPACE } from './tokens.ts';
import { up } from './up.ts';
import { verify } from './verify.ts';

const FAMILY_OPTIONS = Object.keys(FAMILIES) as (keyof typeof FAMILIES)[];

const USAGE = `usage: tools/lab COMMAND

  up [--sites 2] [--gateways 1] [--workers 2] [--protocol ${PROTOCOLS.join('|')}]
     [--topology ${TOPOLOGIES.join('|')}] [--ip ${FAMILY_OPTIONS.join('|')}] [--dataplane ${DATAPLANES.join('|')}]
     [--agents ${AGENTS.join('|')}]
                       brings up sites with real Kubernetes nodes, joined by our network
  verify               shows that every pod reaches every other, and all else that it should
  status               what runs
  down                 takes everything away, also after an interrupted up
  kubectl ARGS         kubectl as the cluster's administrator
  exec NODE -- CMD     runs a command on a node
  logs APP [NODE]      what an app said: ${[...CONTROLLERS, ...NODE_APPS].join(', ')}; or kubelet, containerd, kube-proxy NODE
  restart APP [NODE]   ends an app and starts it again (with --agents pods: deletes its pods)
  upgrade | rollback   with --agents pods: to a stand-in for the next version, and back
  stop APP [NODE] | start APP [NODE]
                       one half of a restart; APP may also be kube-apiserver
  capture NODE|wan [TCPDUMP ARGS]
                       what passes at a node or between the sites`;

class UsageError extends Error {}

const savedLayout = (): LabLayout => {
  const file = join(state, 'layout.json');
  if (!existsSync(file)) throw new UsageError('there is no lab: run tools/lab up');
  return JSON.parse(readFileSync(file, 'utf8')) as LabLayout;
};

const oneOf = <T extends string>(option: string, given: string, known: readonly T[]): T => {
  const found = known.find((candidate) => candidate.toLowerCase() === given.toLowerCase());
  if (!found) throw new UsageError(`--${option} ${given}: one of ${known.join(', ')} would be right`);
  return found;
};

const optionsFrom = (args: string[]): LabOptions => {
  const names = Object.keys(DEFAULTS) as (keyof LabOptions)[];
  const options = Object.fromEntries(
    names.map((name) => [name, { type: 'string' as const, default: String(DEFAULTS[name]) }]),
  );
  const given = parseArgs({ args, options }).values as Record<keyof LabOptions, string>;
  return {
    sites: Number(given.sites),
    gateways: Number(given.gateways),
    workers: Number(given.workers),
    protocol: oneOf('protocol', given.protocol, PROTOCOLS),
    topology: oneOf('topology', given.topology, TOPOLOGIES),
    ip: oneOf('ip', given.ip, FAMILY_OPTIONS),
    dataplane: oneOf('dataplane', given.dataplane, DATAPLANES),
    agents: oneOf('agents', given.agents, AGENTS),
  };
};

const isPods = ({ options }: LabLayout): boolean => options.agents === 'pods';
const podApp = (app: string | undefined): PodApp => {
  const found = POD_APPS.find((known) => known === app);
  if (!found) throw new UsageError(`no app ${app ?? '(not given)'}: there are kube-apiserver, ${POD_APPS.join(', ')}`);
  return found;
};

const upCommand = async (argv: string[]): Promise<void> => {
  const layout = layoutOf(optionsFrom(argv));
  if (existsSync(join(state, 'layout.json')) && JSON.stringify(savedLayout()) !== JSON.stringify(layout)) {
    throw new UsageError('a lab with another layout is up: run tools/lab down first');
  }
  const start = Date.now();
  console.log(`bringing up ${layout.sites.length} sites with ${layout.nodes.length} nodes`);
  await up(layout);
  console.log(`up in ${((Date.now() - start) / 1000).toFixed(0)} s\n\n${drawTopology(layout)}\n\n${whatNext}`);
};

const statusCommand = (): void => {
  const layout = savedLayout();
  const processes = isPods(layout) ? [] : NODE_APPS;
  console.log(drawTopology(layout), '\n');
  const line = (name: string, running: boolean): void =>
    console.log(`  ${name.padEnd(36)}${running ? 'running' : 'NOT RUNNING'}`);
  for (const name of [
    'etcd',
    'kube-apiserver',
    'kube-controller-manager',
    'kube-scheduler',
    'attendant',
    ...(isPods(layout) ? [] : controllerDaemons()),
  ])
    line(name, pidOf(name) !== undefined);
  for (const node of layout.nodes) {
    line(`node ${node.name}`, pidOf(`node-${node.name}`) !== undefined);
    for (const app of processes) line(`  ${app} on ${node.name}`, agentPids(node.name, app).length > 0);
  }
  passThrough([...kubectlCommand(layout), 'get', 'nodes', '-o', 'wide']);
  if (isPods(layout)) passThrough([...kubectlCommand(layout), 'get', 'pods', '-n', NAMESPACE, '-o', 'wide']);
};

/** Runs a command in the foreground; its status becomes ours. */
const passThrough = (argv: readonly string[]): void => {
  const { status, error } = spawnSync(argv[0]!, argv.slice(1), { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exitCode = status ?? 1;
};

const nodeNamed = (layout: LabLayout, name: string | undefined) => {
  const node = layout.nodes.find((candidate) => candidate.name === name);
  if (!node)
    throw new UsageError(
      `no node ${name ?? '(not given)'}: there are ${layout.nodes.map((known) => known.name).join(', ')}`,
    );
  return node;
};

/** Stops or starts an app by name: a controller, an agent of one node (or all), or the API server. */
const control = async (
  verb: 'stop' | 'start',
  app: string | undefined,
  nodeName: string | undefined,
): Promise<void> => {
  const layout = savedLayout();
  if (app === 'kube-apiserver') return verb === 'stop' ? stopApiServer() : startApiServer(layout);
  if (isPods(layout)) throw new UsageError(`pods come back by themselves: tools/lab restart ${app ?? 'APP'} deletes them`);
  const controller = CONTROLLERS.find((known) => known === app);
  if (controller) {
    for (const replica of [1, 2])
      await (verb === 'stop' ? stopDaemon(`${controller}-${replica}`) : startController(layout, controller, replica));
    return;
  }
  const agent = NODE_APPS.find((known) => known === app);
  if (!agent)
    throw new UsageError(
      `no app ${app ?? '(not given)'}: there are kube-apiserver, ${[...CONTROLLERS, ...NODE_APPS].join(', ')}`,
    );
  const nodes = nodeName === undefined ? layout.nodes : [nodeNamed(layout, nodeName)];
  for (const node of nodes) await (verb === 'stop' ? stopAgent(node.name, agent) : startAgent(layout, node, agent));
};

const restart = async (app: string | undefined, node: string | undefined): Promise<void> => {
  const layout = savedLayout();
  if (isPods(layout) && app !== 'kube-apiserver')
    return restartPods(layout, podApp(app), node === undefined ? node : nodeNamed(layout, node).name);
  await control('stop', app, node);
  await control('start', app, node);
};

const podLayout = (): LabLayout => {
  const layout = savedLayout();
  if (!isPods(layout)) throw new UsageError('our apps are processes here, always of the checkout: use restart, or up --agents pods');
  return layout;
};

const logFilesOf = (layout: LabLayout, app: string | undefined, node: string | undefined): string[] => {
  if (CONTROLLERS.some((known) => known === app)) return [1, 2].map((replica) => logFile(`${app}-${replica}`));
  if (NODE_APPS.some((known) => known === app))
    return [logFile(agentLog(nodeNamed(layout, node).name, app as NodeApp))];
  if (['kubelet', 'containerd', 'kube-proxy'].includes(app ?? ''))
    return [join(nodeDir(nodeNamed(layout, node).name), `${app}.log`)];
  if (layout.nodes.some(({ name }) => name === app)) return NODE_APPS.map((agent) => logFile(agentLog(app!, agent)));
  return [logFile(app ?? '')];
};

const logsCommand = async ([app, node]: string[]): Promise<void> => {
  const layout = savedLayout();
  const apps = layout.nodes.some(({ name }) => name === app) ? NODE_APPS : POD_APPS.filter((known) => known === app);
  if (isPods(layout) && apps.length > 0) {
    const where = apps === NODE_APPS ? app : node;
    for (const each of apps) process.stdout.write(await podLogs(layout, each, where));
    return;
  }
  const files = logFilesOf(layout, app, node).filter((file) => existsSync(file));
  if (files.length === 0) throw new UsageError(`no log of ${app ?? '(no app given)'} ${node ?? ''}`);
  for (const file of files) process.stdout.write(readFileSync(file));
};

const captureCommand = ([where, ...args]: string[]): void => {
  const layout = savedLayout();
  const namespace = namespaceOf(where === WAN.name ? WAN.name : nodeNamed(layout, where).name);
  passThrough([...inNamespace(namespace), 'tcpdump', '-nn', '-i', where === WAN.name ? 'wan0' : 'any', ...args]);
};

const commands: Record<string, (argv: string[]) => Promise<void> | void> = {
  up: upCommand,
  down,
  status: statusCommand,
  verify: async () => {
    if (!(await verify(savedLayout()))) process.exitCode = 1;
  },
  kubectl: (argv) => passThrough([...kubectlCommand(savedLayout()), ...argv]),
  exec: ([node, ...argv]) =>
    passThrough([...inNode(nodeNamed(savedLayout(), node).name), ...(argv[0] === '--' ? argv.slice(1) : argv)]),
  logs: logsCommand,
  stop: ([app, node]) => control('stop', app, node),
  start: ([app, node]) => control('start', app, node),
  restart: ([app, node]) => restart(app, node),
  upgrade: () => upgradePods(podLayout()),
  rollback: () => rollbackPods(podLayout()),
  capture: captureCommand,
};

const [name = '', ...argv] = process.argv.slice(2);
const command = commands[name];
if (!command) {
  console.error(USAGE);
  process.exitCode = name === 'help' || name === '--help' ? 0 : 2;
} else {
  try {
    await command(argv);
  } catch (error) {
    const known = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    console.error(known ? (error as Error).message : `tools/lab ${name}: ${(error as Error).message}`);
    process.exitCode = known ? 2 : 1;
  }
}
