/** The command behind tools/lab. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { nodeAppsOf, stopAgent } from '../apps/agents.ts';
import { agentPids } from '../machine/cgroups.ts';
import { inNamespace } from '../machine/command.ts';
import { CONFORMANCE, conformance } from '../substrate/cluster/conformance.ts';
import { kubectlCommand, startApiServer, stopApiServer } from '../kubernetes/control-plane.ts';
import { pidOf, stopDaemon } from '../machine/daemon.ts';
import { down } from '../substrate/down.ts';
import { type LabLayout, layoutOf, namespaceOf, WAN } from '../layout/layout.ts';
import { logsCommand } from './logs.ts';
import { checkNetem } from '../underlay/netem.ts';
import { inNode } from '../node/node.ts';
import { describeOrigin, foreignWarning, noteOrigin, readOrigin } from './owning-checkout.ts';
import { checkout } from '../machine/paths.ts';
import { drawTopology, whatNext } from './picture.ts';
import { POD_APPS, type PodApp, restartPods, rollbackPods, upgradePods } from '../apps/chart.ts';
import { readLayout, saveLayout } from '../substrate/steps.ts';
import { AGGREGATOR, CONTROLLERS } from '../apps/tokens.ts';
import { up } from '../substrate/up.ts';
import { verify } from './verify.ts';
import { nodeNamed, optionsFrom } from './arguments.ts';
import { UsageError } from '../layout/usage-error.ts';
import { probePods } from '../substrate/probes.ts';
import { startAggregator, stopAggregator } from '../apps/aggregator.ts';
import { startController } from '../apps/controllers.ts';
import { startAgent } from '../substrate/agents.ts';
import { FEATURES } from '../features/features.ts';
import { serveDashboard } from '../status/dashboard.ts';
import { servePrometheus } from './prometheus-page.ts';
import { substrateOf } from '../substrate/substrates.ts';

const usage = (): string => readFileSync(join(checkout, 'tools/rig/usage.txt'), 'utf8');

const savedLayout = (): LabLayout => {
  const layout = readLayout();
  if (!layout) throw new UsageError('there is no lab: run tools/lab up');
  return layout;
};

/** The layout of a lab with Kubernetes, for what needs it. */
const clusterLayout = (what: string): LabLayout => {
  const layout = savedLayout();
  if (!substrateOf(layout).hasKubernetes)
    throw new UsageError(`${what}: this lab has no Kubernetes; tools/lab down, then up without --fabric`);
  return layout;
};

const isPods = ({ options }: LabLayout): boolean => options.agents === 'pods';
const podApp = (app: string | undefined): PodApp => {
  const found = POD_APPS.find((known) => known === app);
  if (!found) throw new UsageError(`no app ${app ?? '(not given)'}: there are kube-apiserver, ${POD_APPS.join(', ')}`);
  return found;
};

const layoutFrom = (argv: string[]): LabLayout => {
  const options = optionsFrom(argv);
  try {
    return layoutOf(options);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
};

/** What should run, by the name that is shown, and whether it does. */
const processes = (layout: LabLayout): (readonly [string, boolean])[] => {
  const substrate = substrateOf(layout);
  const apps = isPods(layout) ? [] : substrate.nodeApps(layout);
  const daemons = [...substrate.daemons(layout), ...FEATURES.flatMap((feature) => feature.daemons(layout))];
  return [
    ...daemons.map((name) => [name, pidOf(name) !== undefined] as const),
    ...layout.nodes.flatMap(({ name }) => [
      [`node ${name}`, pidOf(`node-${name}`) !== undefined] as const,
      ...apps.map((app) => [`  ${app} on ${name}`, agentPids(name, app).length > 0] as const),
    ]),
  ];
};

const upCommand = async (argv: string[]): Promise<void> => {
  const layout = layoutFrom(argv);
  const saved = readLayout();
  if (saved && JSON.stringify(saved) !== JSON.stringify(layout)) {
    throw new UsageError(
      `a lab with another layout is up (${describeOrigin(readOrigin())}): see tools/lab status; tools/lab down takes it away`,
    );
  }
  const start = Date.now();
  checkNetem(layout);
  const isUp = processes(layout).every(([, isRunning]) => isRunning);
  console.log(
    isUp
      ? 'already up: what should be there is checked'
      : `bringing up ${layout.sites.length} sites with ${layout.nodes.length} nodes`,
  );
  noteOrigin();
  await up(layout);
  const took = ((Date.now() - start) / 1000).toFixed(0);
  const result = isUp ? `already up, checked: ${describeOrigin(readOrigin())}` : `up in ${took} s`;
  console.log(`${result}\n\n${drawTopology(layout)}\n\n${whatNext(layout, await probePods(layout))}`);
};

const statusCommand = (): void => {
  const layout = savedLayout();
  console.log(`${describeOrigin(readOrigin())}\n\n${drawTopology(layout)}\n`);
  for (const [name, isRunning] of processes(layout))
    console.log(`  ${name.padEnd(36)}${isRunning ? 'running' : 'NOT RUNNING'}`);
  for (const command of substrateOf(layout).hints.status(layout)) passThrough(command);
};

/** Runs a command in the foreground; its status becomes ours. */
const passThrough = (argv: readonly string[]): void => {
  const { status, error } = spawnSync(argv[0]!, argv.slice(1), { stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exitCode = status ?? 1;
};

/** Stops or starts an app by name: a controller, an agent of one node (or all), or the API server. */
const control = async (
  verb: 'stop' | 'start',
  app: string | undefined,
  nodeName: string | undefined,
): Promise<void> => {
  const layout = savedLayout();
  if (app === 'kube-apiserver' || CONTROLLERS.some((known) => known === app)) clusterLayout(`${verb} ${app}`);
  if (app === 'kube-apiserver') return verb === 'stop' ? stopApiServer() : startApiServer(layout);
  if (isPods(layout))
    throw new UsageError(`pods come back by themselves: tools/lab restart ${app ?? 'APP'} deletes them`);
  if (app === AGGREGATOR) {
    const cluster = clusterLayout(verb);
    return verb === 'stop' ? stopAggregator(cluster) : startAggregator(cluster);
  }
  const controller = CONTROLLERS.find((known) => known === app);
  if (controller) {
    for (const replica of [1, 2])
      await (verb === 'stop' ? stopDaemon(`${controller}-${replica}`) : startController(layout, controller, replica));
    return;
  }
  const agent = nodeAppsOf(layout).find((known) => known === app);
  if (!agent)
    throw new UsageError(
      `no app ${app ?? '(not given)'}: there are ${[...substrateOf(layout).programs.stoppable, ...nodeAppsOf(layout)].join(', ')}`,
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
  if (!isPods(layout))
    throw new UsageError('our apps are processes here, always of the checkout: use restart, or up --agents pods');
  return layout;
};

const captureCommand = ([where, ...args]: string[]): void => {
  const layout = savedLayout();
  const namespace = namespaceOf(where === WAN.name ? WAN.name : nodeNamed(layout, where).name);
  passThrough([...inNamespace(namespace), 'tcpdump', '-nn', '-i', where === WAN.name ? 'wan0' : 'any', ...args]);
};

const execCommand = ([name, ...words]: string[]): void => {
  const node = nodeNamed(savedLayout(), name);
  const argv = words[0] === '--' ? words.slice(1) : words;
  if (argv.length === 0) throw new UsageError(`no command for ${node.name}: tools/lab exec ${node.name} -- ip route`);
  passThrough([...inNode(node.name), ...argv]);
};

/** For commands that take no words: a mistyped one must not act. */
const alone =
  (name: string, act: () => Promise<void> | void) =>
  (argv: string[]): Promise<void> | void => {
    if (argv.length > 0) throw new UsageError(`tools/lab ${name} takes nothing more, not "${argv.join(' ')}"`);
    return act();
  };

const conformanceCommand = async (args: string[]): Promise<void> => {
  const { focus, skip, processes } = CONFORMANCE;
  const options = {
    focus: { type: 'string', default: focus },
    skip: { type: 'string', default: skip },
    processes: { type: 'string', default: String(processes) },
  } as const;
  const given = parseArgs({ args, options }).values;
  const count = Number(given.processes);
  if (!Number.isInteger(count) || count < 1 || count > 16)
    throw new UsageError(`--processes ${given.processes}: must be an integer from 1 to 16`);
  if (!(await conformance(clusterLayout('conformance'), { ...given, processes: count }))) process.exitCode = 1;
};

/** Each changes the lab that is up, and what is noted of it. */
const featureCommands = Object.fromEntries(
  FEATURES.flatMap((feature) =>
    Object.entries(feature.commands).map(([name, change]) => [
      name,
      (words: string[]): void => saveLayout(change(words, savedLayout)),
    ]),
  ),
);

const commands: Record<string, (argv: string[]) => Promise<void> | void> = {
  up: upCommand,
  down: alone('down', down),
  status: alone('status', statusCommand),
  verify: alone('verify', async () => {
    if (!(await verify(savedLayout()))) process.exitCode = 1;
  }),
  conformance: conformanceCommand,
  kubectl: (argv) => passThrough([...kubectlCommand(clusterLayout('kubectl')), ...argv]),
  exec: execCommand,
  prometheus: alone('prometheus', () => servePrometheus(clusterLayout('prometheus'))),
  dashboard: alone('dashboard', () => serveDashboard(clusterLayout('dashboard'))),
  logs: (argv) => logsCommand(savedLayout(), argv),
  stop: ([app, node]) => control('stop', app, node),
  start: ([app, node]) => control('start', app, node),
  restart: ([app, node]) => restart(app, node),
  upgrade: alone('upgrade', () => upgradePods(podLayout())),
  rollback: alone('rollback', () => rollbackPods(podLayout())),
  ...featureCommands,
  capture: captureCommand,
};

const [name = '', ...argv] = process.argv.slice(2);
const command = commands[name];
if (!command) {
  console.error(`tools/lab: there is no command "${name}"\n${usage()}`);
  process.exitCode = 2;
} else {
  const warning = name === 'status' ? undefined : foreignWarning(readOrigin());
  if (warning) console.error(warning);
  try {
    await command(argv);
  } catch (error) {
    const known = error instanceof UsageError || (error as { code?: string }).code?.startsWith('ERR_PARSE_ARGS');
    console.error(known ? (error as Error).message : `tools/lab ${name}: ${(error as Error).message}`);
    process.exitCode = known ? 2 : 1;
  }
}
