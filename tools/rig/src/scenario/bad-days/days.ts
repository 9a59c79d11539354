import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LabLayout, LabNode } from '../../layout/layout.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { commandInPod, nodeCondition, startFlow, timeUntil, timeUntilMatch } from '../scenario.ts';
import { watchUplinks } from './leaks.ts';
import { tryOnNode } from '../../node/node.ts';
import { probePods } from '../../substrate/probes.ts';

/** What every bad day is judged by. */

/** Once its cause is gone, a fault heals by itself within this. */
export const HEALED_MS = 10_000;

export interface Day {
  /** Flows that do not depend on what is broken, and what they lost: nothing, best. */
  readonly lost: readonly string[];
  /** Packets between pods seen outside of tunnels, on the uplinks of every node. */
  readonly leaked: readonly string[];
}

/** On a node that was off the API server knows a pod as ready before it runs again. */
const runs = (pod: Pod): boolean => {
  try {
    commandInPod(pod, []);
    return true;
  } catch {
    return false;
  }
};
const PODS_MS = 60_000;

/** Lets something happen to a node under traffic between the others. */
export const duringTraffic = async (layout: LabLayout, broken: LabNode, happens: () => Promise<void>): Promise<Day> => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
  let ends: readonly Pod[] = [];
  const areRunning = async (): Promise<boolean> => {
    const pods = await probePods(layout);
    const nodes = layout.nodes.filter(({ name, role }) => name !== broken.name && role !== 'gateway');
    ends = nodes.flatMap(({ name }) => pods.find(({ node }) => node === name) ?? []);
    return ends.length === nodes.length && ends.every(runs);
  };
  await timeUntil('the pods of the flows run', areRunning, PODS_MS);
  const watched = await watchUplinks(folder, layout.nodes);
  const flows = await Promise.all(
    ends.map(async (from, index) => {
      const to = ends[(index + 1) % ends.length]!;
      return { name: `${from.node} - ${to.node}`, flow: await startFlow(from, to, PER_FLOW) };
    }),
  );
  let failure: unknown;
  try {
    await happens();
  } catch (error) {
    failure = error; // what the flows saw meanwhile is told first
  }
  const reports = await Promise.all(flows.map(async ({ name, flow }) => ({ name, ...(await flow.end()) })));
  const lost = reports
    .filter((report) => report.lost > 0)
    .map(({ name, sent, lost: count, losses }) => `${name}: ${count} of ${sent}, ${JSON.stringify(losses)}`);
  const leaked = await watched();
  rmSync(folder, { recursive: true, force: true });
  if (failure !== undefined) {
    if (lost.length > 0 || leaked.length > 0) console.log([...lost, ...leaked].join('\n'));
    throw failure;
  }
  return { lost, leaked };
};

/** Datagrams a second of each flow; some five of them run at once. */
const PER_FLOW = 250;

/** The host of a node reaches a pod: without an API server a node that was off has no pods of its own. */
export const reaches = (node: LabNode, ip: string): boolean =>
  tryOnNode(node.name, 'ping', '-c', '1', '-W', '1', ip) !== undefined;

/** Waits for the node's condition. @throws Error with what it says instead */
const untilDegraded = async (
  layout: LabLayout,
  node: LabNode,
  { what, says, limitMs }: { readonly what: string; readonly says: RegExp; readonly limitMs: number },
): Promise<void> => {
  const read = async (): Promise<string> => {
    const condition = await nodeCondition(layout, node.name, 'UnboundedNetworkDegraded');
    return `${condition?.status} ${condition?.reason}: ${condition?.message}`;
  };
  await timeUntilMatch(`${node.name} ${what}`, read, says, limitMs);
};

/** The node's condition tells of the fault. */
export const toldAs = (layout: LabLayout, node: LabNode, reason: RegExp): Promise<void> =>
  untilDegraded(layout, node, {
    what: `tells of ${reason}`,
    says: new RegExp(`^True .*(?:${reason.source})`, 's'),
    limitMs: 2 * HEALED_MS,
  });

/** And that it is over. */
export const healed = (layout: LabLayout, node: LabNode): Promise<void> =>
  untilDegraded(layout, node, { what: 'is healed', says: /^False /, limitMs: HEALED_MS });

/** What is taken out of the kernel by others is put back within the time of a healing. */
export const repairsDrift = async (node: LabNode): Promise<void> => {
  const routes = (...of: readonly string[]): string =>
    tryOnNode(node.name, 'ip', 'route', 'show', ...of, 'proto', '117') ?? '';
  // The netlink data path has a table of its own.
  const found = routes('table', 'all')
    .split('\n')
    .find((line) => /^\d/.test(line)); // not one of type unreachable
  const [gone = '', ...words] = (found ?? '').split(' ');
  if (gone === '') throw new Error(`${node.name} has no route of ours`);
  const table = words.includes('table') ? words[words.indexOf('table') + 1]! : 'main';
  tryOnNode(node.name, 'ip', 'route', 'delete', gone, 'table', table, 'proto', '117');
  const isBack = (): boolean => routes(gone, 'table', table) !== '';
  await timeUntil(`${node.name} has its route to ${gone} again`, isBack, HEALED_MS);
};
