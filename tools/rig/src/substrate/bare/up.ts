import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PUBLIC_KEY_FILE } from '@unbounded/config/ownership';
import { agentLog, objectsFolder, startAgents } from '../../apps/agents.ts';
import { tryRun } from '../../machine/command.ts';
import { logTail } from '../../machine/daemon.ts';
import { makeFabric } from '../../underlay/underlay.ts';
import { waitForPaths } from './proven-paths.ts';
import { cniListFile, startPods } from './pods.ts';
import { kernelProtocols } from '../../machine/kernel.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { checkNetem, impair } from '../../underlay/netem.ts';
import { inNode, makeMountPoints, nodeFile, startNode } from '../../node/node.ts';
import { nodeDir } from '../../machine/paths.ts';
import { blockUdp, startRelay } from '../../features/relay/relay.ts';
import { saveLayout, startWorld, step } from '../steps.ts';
import { NODE_AGENT } from '../../apps/tokens.ts';
import { type Reports, worldObjects } from './world-objects.ts';

/**
 * The lab without Kubernetes: the same sites and agents, with objects from files and network namespaces as pods. It runs
 * wherever network namespaces do, so in the virtual machine too.
 */

/** An emulated machine starts a dozen processes slowly. */
const DEADLINE_MS = 180_000;
const POLL_MS = 250;

/** Waits until something is so on every node. @throws Error with the nodes that lag and what their agents said last */
const waitForNodes = async (layout: LabLayout, what: string, holds: (node: string) => boolean): Promise<void> => {
  for (const end = Date.now() + DEADLINE_MS; ; await delay(POLL_MS)) {
    const waiting = layout.nodes.filter(({ name }) => !holds(name));
    if (waiting.length === 0) return;
    if (Date.now() < end) continue;
    const said = waiting.map(({ name }) => `${name}: ${logTail(agentLog(name, NODE_AGENT))}`);
    throw new Error(`${what}: not after ${DEADLINE_MS / 1000} s on\n${said.join('\n')}`);
  }
};

const keyFile = (node: string): string => nodeFile(node, PUBLIC_KEY_FILE);

/** What the agents tell of their nodes: here they leave it in files. */
export const readReports = (layout: LabLayout): Reports => {
  const protocols = kernelProtocols();
  return new Map(
    layout.nodes.map(({ name }) => [name, { publicKey: readFileSync(keyFile(name), 'utf8').trim(), protocols }]),
  );
};

/** Gives all agents their objects, whole. */
export const writeObjects = (layout: LabLayout, reports: Reports): void => {
  const file = join(objectsFolder, 'world.yaml');
  const objects = worldObjects(layout, reports);
  writeFileSync(`${file}.new`, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  renameSync(`${file}.new`, file);
};

const isReady = (node: string): boolean =>
  existsSync(cniListFile(node)) &&
  tryRun([...inNode(node), 'curl', '-sf', '--max-time', '5', 'http://127.0.0.1:9998/readyz']) !== undefined;

export const upFabric = async (layout: LabLayout): Promise<void> => {
  checkNetem(layout);
  saveLayout(layout);
  await step('underlay: LANs, routers, WAN', () => makeFabric(layout));
  impair(layout);
  blockUdp(layout);
  startWorld();
  startRelay(layout);
  makeMountPoints();
  mkdirSync(objectsFolder, { recursive: true });
  await step('nodes', async () => {
    for (const node of layout.nodes) startNode(layout, node);
    await waitForNodes(layout, 'the node is made', (node) => existsSync(join(nodeDir(node), 'made')));
  });
  await step('agents, and the keys that they make', async () => {
    await startAgents(layout);
    await waitForNodes(layout, 'the agent has a key', (node) => existsSync(keyFile(node)));
  });
  await step('objects, and their first plans', async () => {
    writeObjects(layout, readReports(layout));
    await waitForNodes(layout, 'the plan is applied', isReady);
  });
  await step('pods', () => startPods(layout));
  await step('every way proven', () => waitForPaths(layout));
};
