import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentLog, NODE_APPS, nodeAppsOf } from '../apps/agents.ts';
import type { LabLayout } from '../layout/layout.ts';
import { mergedLog } from './merged-log.ts';
import { logFile, nodeDir } from '../machine/paths.ts';
import { POD_APPS, type PodApp, podLogs } from '../apps/chart.ts';
import { aggregatorDaemons } from '../apps/aggregator.ts';
import { AGGREGATOR, CONTROLLERS } from '../apps/tokens.ts';
import { nodeNamed } from './arguments.ts';
import { UsageError } from '../layout/usage-error.ts';
import { substrateOf } from '../substrate/substrates.ts';

/** What the lab's programs said. */

interface Log {
  readonly label: string;
  readonly file: string;
}

const includes = (known: readonly string[], name: string): boolean => known.includes(name);

/** Files of what runs as processes; their labels are empty where there is one only. @throws UsageError */
const logsOf = (layout: LabLayout, name: string, node: string | undefined): readonly Log[] => {
  const daemon = (label: string): Log => ({ label, file: logFile(label) });
  if (includes(CONTROLLERS, name)) return [1, 2].map((replica) => daemon(`${name}-${replica}`));
  if (name === AGGREGATOR) return aggregatorDaemons(layout).map(daemon);
  const { ofCluster, ofNode } = substrateOf(layout).programs;
  if (includes(ofCluster, name)) return [daemon(name)];
  const agent = nodeAppsOf(layout).find((known) => known === name);
  if (agent) return [daemon(agentLog(nodeNamed(layout, node).name, agent))];
  if (includes(ofNode, name))
    return [{ label: name, file: join(nodeDir(nodeNamed(layout, node).name), `${name}.log`) }];
  return nodeAppsOf(layout).map((app) => ({ label: app, file: logFile(agentLog(nodeNamed(layout, name).name, app)) }));
};

const whatThereIs = (layout: LabLayout): string => {
  const { ofCluster, ofNode } = substrateOf(layout).programs;
  return [
    ...(ofCluster.length === 0 ? [] : [`  of the cluster: ${ofCluster.join(', ')}`]),
    `  of a node:      ${[...nodeAppsOf(layout), ...ofNode].map((name) => `${name} NODE`).join(', ')}`,
    `  of our apps on a node: ${layout.nodes.map(({ name }) => name).join(', ')}`,
  ].join('\n');
};

const podAppsOf = (layout: LabLayout, name: string): readonly PodApp[] =>
  layout.nodes.some((node) => node.name === name) ? NODE_APPS : POD_APPS.filter((known) => known === name);

/** Prints what an app said. @throws UsageError that lists the logs there are */
export const logsCommand = async (layout: LabLayout, [name, node]: string[]): Promise<void> => {
  if (name === undefined) throw new UsageError(`the log of what? There are\n${whatThereIs(layout)}`);
  const isNode = layout.nodes.some((known) => known.name === name);
  const { ofCluster, ofNode } = substrateOf(layout).programs;
  const known: readonly string[] = [...nodeAppsOf(layout), ...ofCluster, ...ofNode];
  if (!isNode && !known.includes(name)) throw new UsageError(`no log of "${name}"; there are\n${whatThereIs(layout)}`);
  const apps = layout.options.agents === 'pods' ? podAppsOf(layout, name) : [];
  if (apps.length > 0) {
    const where = isNode ? name : node === undefined ? undefined : nodeNamed(layout, node).name;
    const texts = await Promise.all(apps.map((app) => podLogs(layout, app, where)));
    process.stdout.write(mergedLog(texts.map((text) => ({ label: '', text }))));
    return;
  }
  const logs = logsOf(layout, name, node).filter(({ file }) => existsSync(file));
  if (logs.length === 0) throw new Error(`${name} has not said anything yet`);
  const texts = logs.map(({ label, file }) => ({ label, text: readFileSync(file, 'utf8') }));
  process.stdout.write(texts.length === 1 ? texts[0]!.text : mergedLog(texts));
};
