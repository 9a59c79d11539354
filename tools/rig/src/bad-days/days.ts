import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LabLayout, LabNode } from '../layout.ts';
import { nodeCondition, podOn, startFlow, timeUntil, tryOnNode } from '../scenario.ts';
import { watchUplinks } from './leaks.ts';

/** What every bad day is judged by. */

/** Once its cause is gone, a fault heals by itself within this. */
export const HEALED_MS = 10_000;

export interface Day {
  /** Flows that do not depend on what is broken, and what they lost: nothing, best. */
  readonly lost: readonly string[];
  /** Packets between pods seen outside of tunnels, on the uplinks of every node. */
  readonly leaked: readonly string[];
}

/** Lets something happen to a node under traffic between the others. */
export const duringTraffic = async (layout: LabLayout, broken: LabNode, happens: () => Promise<void>): Promise<Day> => {
  const folder = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
  const ends = (await Promise.all(layout.nodes.map(({ name }) => podOn(layout, name)))).filter(
    ({ node }) => node !== broken.name && layout.nodes.find(({ name }) => name === node)?.role !== 'gateway',
  );
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
  let seen = '';
  const isSo = async (): Promise<boolean> => {
    const condition = await nodeCondition(layout, node.name, 'UnboundedNetworkDegraded');
    seen = `${condition?.status} ${condition?.reason}: ${condition?.message}`;
    return says.test(seen);
  };
  await timeUntil(`${node.name} ${what}`, isSo, limitMs).catch((error: Error) => {
    throw new Error(`${error.message}; it says ${seen}`);
  });
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
  const route = (): string => (tryOnNode(node.name, 'ip', 'route', 'show', 'proto', '117') ?? '').split('\n')[0]!;
  const gone = route().split(' ')[0]!;
  if (gone === '') throw new Error(`${node.name} has no route of ours`);
  tryOnNode(node.name, 'ip', 'route', 'delete', gone, 'proto', '117');
  const isBack = (): boolean => (tryOnNode(node.name, 'ip', 'route', 'show', gone, 'proto', '117') ?? '') !== '';
  await timeUntil(`${node.name} has its route to ${gone} again`, isBack, HEALED_MS);
};
