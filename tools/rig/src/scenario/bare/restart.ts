import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { PIN_FOLDER } from '@unbounded/config/ownership';
import type { LabLayout } from '../../layout/layout.ts';
import { podCommand } from '../../substrate/bare/pods.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { killAgent, timeUntil } from '../scenario.ts';
import { onNode } from '../../node/node.ts';
import { agentReady } from '../../apps/agent-state.ts';

/** Agents that are killed and replaced under traffic. */

export interface RestartReport {
  readonly sent: number;
  readonly lost: number;
  /** Programs at the anchor's egress. */
  readonly filters: number;
  readonly programSwapped: boolean;
  readonly mapsKept: boolean;
  readonly devicesKept: boolean;
}

const DEADLINE_MS = 360_000;

interface Flow {
  readonly answered: ReadonlySet<number>;
  stop(): Promise<void>;
}

/** Pings that go on until they are stopped. */
const startFlow = (from: Pod, to: Pod): Flow => {
  const answered = new Set<number>();
  const [program, ...args] = podCommand(from, ['ping', '-n', '-i', '0.02', to.ip]);
  const child: ChildProcess = spawn(program!, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let rest = '';
  child.stdout!.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) {
      const number = /icmp_seq=(\d+)/.exec(line)?.[1];
      if (number !== undefined) answered.add(Number(number));
    }
  });
  return {
    answered,
    async stop() {
      const ended = once(child, 'exit');
      child.kill('SIGINT');
      await ended;
    },
  };
};

const latest = ({ answered }: Flow): number => Math.max(0, ...answered);

/** Our devices on a node, with their kinds. */
export const ourDevices = (node: string): Record<string, string> => {
  const links = JSON.parse(onNode(node, 'ip', '-d', '-j', 'link', 'show')) as {
    ifname: string;
    ifalias?: string;
    linkinfo?: { info_kind?: string };
  }[];
  return Object.fromEntries(
    links.flatMap(({ ifname, ifalias, linkinfo }) =>
      ifalias === 'unbounded' ? [[ifname, linkinfo?.info_kind ?? '']] : [],
    ),
  );
};

/** The programs at the anchor's egress, as filters of a clsact qdisc: this is for a kernel without tcx. */
const attached = (node: string): { filters: number; program: number; maps: string } => {
  const show = onNode(node, 'tc', '-j', 'filter', 'show', 'dev', 'unbounded0', 'egress');
  const filters = JSON.parse(show) as { options?: { prog?: { id?: number } } }[];
  const ids = filters.flatMap(({ options }) => options?.prog?.id ?? []);
  const program = ids[0] ?? 0;
  const used = JSON.parse(onNode(node, 'bpftool', '-j', 'prog', 'show', 'id', String(program))) as {
    map_ids: number[];
  };
  const pin = `${PIN_FOLDER}/maps/unbounded_endpoints_v4`;
  const { id } = JSON.parse(onNode(node, 'bpftool', '-j', 'map', 'show', 'pinned', pin)) as { id: number };
  return { filters: ids.length, program, maps: `${id} ${used.map_ids.includes(id)}` };
};

/** Kills the agents of two nodes on the path between two pods, and starts them again. */
export const restartUnderTraffic = async (
  layout: LabLayout,
  [from, to]: readonly [Pod, Pod],
  nodes: readonly string[],
): Promise<RestartReport> => {
  const node = nodes[0]!;
  const [before, devices] = [attached(node), JSON.stringify(ourDevices(node))];
  const flow = startFlow(from, to);
  await timeUntil('the flow is under way', () => flow.answered.size > 20, DEADLINE_MS);
  await Promise.all(nodes.map((name) => killAgent(layout, name, 'node-dataplane')));
  await timeUntil('the agents are back', () => nodes.every(agentReady), DEADLINE_MS);
  const soFar = latest(flow);
  await timeUntil('the flow goes on after that', () => latest(flow) > soFar + 20, DEADLINE_MS);
  const after = attached(node);
  await flow.stop();
  return {
    sent: latest(flow),
    lost: latest(flow) - flow.answered.size,
    filters: after.filters,
    programSwapped: after.program !== before.program,
    mapsKept: after.maps === before.maps,
    devicesKept: JSON.stringify(ourDevices(node)) === devices,
  };
};
