import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stopAgent } from '../../apps/agents.ts';
import { agentReady } from '../../apps/agent-state.ts';
import { NODE_AGENT } from '../../apps/tokens.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { newSince } from '../../features/partner/firewall.ts';
import { PARTNER_PORTS, partnerIps } from '../../features/partner/layout.ts';
import { seenByPartner } from '../../features/partner/partner.ts';
import { layoutOf } from '../../layout/layout.ts';
import { startAgent } from '../../substrate/agents.ts';
import { down } from '../../substrate/down.ts';
import { type FlowReport, flowDuring, inPodNetwork, timeUntil } from '../scenario.ts';
import { type Selected, upWithRule } from './rule.ts';
import { type Carried, selectedAlone, uplinksDuring } from './uplinks.ts';

/** The agent of the node that owns the egress address goes, and comes back, while a pod of the other site talks to the partner. */

const layout = layoutOf({ workers: 1, partner: true });
const partner = partnerIps(layout)[0]!;
let selected: Selected;
let pod: Pod;

beforeAll(async () => {
  selected = await upWithRule(layout);
  pod = selected.pods.find(({ node }) => node === 's2-w1')!;
}, 300_000);
afterAll(down, 60_000);

/** A line every 50 ms, and its echo: ends with a failure when an echo is not the line, or stays away for the given time. */
const CONVERSATION = `exec 3<>/dev/tcp/$1/$2 || exit 1
for ((line = 0; line < $3; line++)); do
  echo $line >&3 && read -r -t 30 echo <&3 && [ "$echo" = $line ] || { echo "ended at line $line" >&2; exit 1; }
  sleep 0.05
done`;
const LINES_PER_SECOND = 20;
const PER_SECOND = 100;

/** One TCP connection; rejects when it does not last. */
const converse = async (from: Pod, seconds: number): Promise<void> => {
  const words = [partner, String(PARTNER_PORTS.echo), String(seconds * LINES_PER_SECOND)];
  const [program = '', ...args] = [...inPodNetwork(from), 'bash', '-c', CONVERSATION, 'bash', ...words];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.on('data', (text: Buffer) => (said += text.toString()));
  const status = await new Promise((resolve) => child.once('close', resolve));
  if (status !== 0) throw new Error(`the connection to the partner did not last: ${said}`);
};

interface Seen {
  readonly flow: FlowReport;
  readonly carried: Carried;
  /** That the partner saw meanwhile. */
  readonly sources: readonly string[];
}

/** A TCP connection and 100 datagrams a second to the partner, while something happens to the owner. */
const talkDuring = async (seconds: number, disturb: () => Promise<void>): Promise<Seen> => {
  const before = seenByPartner();
  let flow: FlowReport | undefined;
  const carried = await uplinksDuring(layout, selectedAlone(layout, selected), async () => {
    const ends = { from: pod, to: { ip: partner }, seconds, perSecond: PER_SECOND };
    [flow] = await Promise.all([flowDuring(ends, disturb), converse(pod, seconds)]);
  });
  const sources = newSince(before, seenByPartner()).map(({ source }) => source);
  return { flow: flow!, carried, sources: [...new Set(sources)] };
};

const startOwner = async (): Promise<void> => {
  await startAgent(
    layout,
    layout.nodes.find(({ name }) => name === selected.owner)!,
    NODE_AGENT,
  );
  await timeUntil('the agent of the owner is ready', () => agentReady(selected.owner), 30_000);
};

const expectNoOtherSource = ({ carried, sources }: Seen): void => {
  expect(carried.improper).toEqual([]);
  expect([...carried.proper.keys()]).toEqual([selected.owner]);
  expect(sources).toEqual([...selected.addresses]);
};

test(
  'a restart of the agent ends no connection, moves no packet to another address and loses none',
  {
    timeout: 120_000,
  },
  async () => {
    const seen = await talkDuring(20, async () => {
      await stopAgent(selected.owner, NODE_AGENT);
      await startOwner();
    });
    console.log(`lost ${seen.flow.lost} of ${seen.flow.sent}, ${seen.flow.largestGapMillis} ms without an answer`);
    expectNoOtherSource(seen);
    expect(seen.flow.lost).toBe(0);
  },
);

test(
  'an owner without its agent falls silent within ten seconds, and goes on when the agent is back',
  {
    timeout: 180_000,
  },
  async () => {
    const seen = await talkDuring(70, async () => {
      await stopAgent(selected.owner, NODE_AGENT, 'SIGKILL');
      await delay(20_000);
      await startOwner();
    });
    const { lost, sent, losses, largestGapMillis } = seen.flow;
    console.log(`lost ${lost} of ${sent}, ${largestGapMillis} ms without an answer: ${JSON.stringify(losses)}`);
    expectNoOtherSource(seen);
    const killedAtMs = 3000; // flowDuring lets the flow establish itself
    expect(losses[0]!.atMillis - killedAtMs).toBeLessThan(10_000);
    expect(largestGapMillis).toBeGreaterThan(9000);
    expect(losses.at(-1)!.lastNumber).toBeLessThan(sent - 500);
  },
);
