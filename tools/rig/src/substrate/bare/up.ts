import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { keptPlanFile } from '@unbounded/config/ownership';
import type { EgressNodeSlice } from '@unbounded/crds';
import { agentLog, NODE_APPS, type NodeApp, startAgentsFrom } from '../../apps/agents.ts';
import { NODE_AGENT } from '../../apps/tokens.ts';
import { FEATURES } from '../../features/features.ts';
import type { LabLayout } from '../../layout/layout.ts';
import { tryRun } from '../../machine/command.ts';
import { logTail } from '../../machine/daemon.ts';
import { hasWireGuard } from '../../machine/kernel.ts';
import { nodeDir } from '../../machine/paths.ts';
import { inNode, makeMountPoints, nodeFile, startNode } from '../../node/node.ts';
import { checkNetem, impair } from '../../underlay/netem.ts';
import { makeUnderlay } from '../../underlay/underlay.ts';
import { saveLayout, startWorld, step } from '../steps.ts';
import { egressSlices, keyFile, objectsFolder, objectSource, readReports, writeObjects } from './objects.ts';
import { cniListFile, startPods } from './pods.ts';
import { waitForPaths } from './proven-paths.ts';

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

const isReady = (node: string): boolean =>
  existsSync(cniListFile(node)) &&
  tryRun([...inNode(node), 'curl', '-sf', '--max-time', '5', 'http://127.0.0.1:9998/readyz']) !== undefined;

/** Whether the node keeps a plan, as it does of what its kernel enforces, with every pod and address of its slices. */
const isInForce = (node: string, slices: readonly EgressNodeSlice[]): boolean => {
  const file = nodeFile(node, keptPlanFile('egress'));
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  return slices
    .filter(({ spec }) => spec.nodeName === node)
    .flatMap(({ spec }) => [
      ...(spec.pods ?? []).map(({ uid }) => uid),
      ...(spec.owned ?? []).map(({ address }) => address),
    ])
    .every((wanted) => text.includes(`"${wanted}"`));
};

/** Nothing that has nothing to do: an emulated machine feels each process. */
export const nodeApps = (layout: LabLayout): readonly NodeApp[] =>
  hasWireGuard() && !FEATURES.some(({ needsKeeper }) => needsKeeper(layout)) ? [NODE_AGENT] : NODE_APPS;

export const up = async (layout: LabLayout): Promise<void> => {
  checkNetem(layout);
  saveLayout(layout);
  await step('underlay: LANs, routers, WAN', () => makeUnderlay(layout));
  impair(layout);
  startWorld();
  for (const feature of FEATURES) feature.start(layout);
  makeMountPoints();
  mkdirSync(objectsFolder, { recursive: true });
  await step('nodes', async () => {
    for (const node of layout.nodes) startNode(layout, node.name);
    await waitForNodes(layout, 'the node is made', (node) => existsSync(join(nodeDir(node), 'made')));
  });
  await step('agents, and the keys that they make', async () => {
    await startAgentsFrom(objectSource, layout, nodeApps(layout));
    await waitForNodes(layout, 'the agent has a key', (node) => existsSync(keyFile(node)));
  });
  await step('objects, and their first plans', async () => {
    writeObjects(layout, readReports(layout));
    await waitForNodes(layout, 'plan applied', isReady);
  });
  await step('pods', () => startPods(layout));
  const slices = egressSlices(layout);
  if (slices.length > 0)
    await step('egress addresses', async () => {
      writeObjects(layout, readReports(layout)); // now that pods have addresses
      await waitForNodes(layout, 'egress is in force', (node) => isInForce(node, slices));
    });
  await step('every way proven', () => waitForPaths(layout));
};
