import { setTimeout as delay } from 'node:timers/promises';
import { egressAnnotations } from '@unbounded/crds';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freezeAgent, NODE_APPS, stopAgent } from '../../apps/agents.ts';
import { agentReady } from '../../apps/agent-state.ts';
import { NODE_AGENT } from '../../apps/tokens.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { admittedBlocks, EGRESS_LABEL, PARTNER, partnerIps } from '../../features/partner/layout.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { type LabNode, layoutOf, namespaceOf, WAN } from '../../layout/layout.ts';
import { inNamespace, run, tryRun } from '../../machine/command.ts';
import { startAgent } from '../../substrate/agents.ts';
import { down } from '../../substrate/down.ts';
import { switchPort } from '../../underlay/underlay.ts';
import type { Outage } from '../outages.ts';
import { turnOff, turnOn } from '../reboot.ts';
import { type RunningFlow, startFlow, timeUntil } from '../scenario.ts';
import { doubleHolders, holdersDuring } from './holders.ts';
import { isRuleReady, ownersOfRule, type Selected, upWithRule } from './rule.ts';
import { seenByPartnerAs } from './traffic.ts';
import { type Carried, selectedAlone, uplinksDuring } from './uplinks.ts';

/**
 * The node that owns the addresses stands still, is alone, loses its power or is shut down: it falls silent by itself, nothing leaves
 * with another source, and the other node has the addresses when an operator says that it may.
 */

const layout = layoutOf({ gateways: 2, workers: 1, ip: 'dual', partner: true });
const OWNERS = ['s1-g1', 's1-g2'];
let selected: Selected;
let pod: Pod;

beforeAll(async () => {
  selected = await upWithRule(layout);
  pod = selected.pods.find(({ node }) => node === 's2-w1')!;
  const [[key, value] = ['', '']] = Object.entries(EGRESS_LABEL);
  await kubectl(layout, ['label', 'node', ...OWNERS, `${key}=${value}`, '--overwrite']);
}, 400_000);
afterAll(down, 60_000);

const nodeOf = (name: string): LabNode => layout.nodes.find((node) => node.name === name)!;

/** An agent that is not heard of for 15 s owns on until its right has expired, 8 s later. */
const SILENT_MS = 25_000;
const MOVED_MS = 30_000;
const PER_SECOND = 50;

const seenAs = (): Promise<(string | undefined)[]> =>
  Promise.all(partnerIps(layout).map((ip) => seenByPartnerAs(pod, ip)));
const isAdmitted = async (): Promise<boolean> =>
  (await seenAs()).every((seen) => selected.addresses.includes(seen ?? ''));

/** Whether nobody answers the partner when it looks for who has an address. */
const nobodyAnswers = (): boolean => {
  const inside = inNamespace(namespaceOf(PARTNER));
  run([...inside, 'ip', 'neigh', 'flush', 'dev', 'eth0']);
  return selected.addresses.every((address) => {
    tryRun([...inside, 'ping', '-c1', '-W1', address]);
    return !run([...inside, 'ip', 'neigh', 'show', address]).includes('lladdr');
  });
};

/** Of the rule: one. */
const currentOwner = async (): Promise<string> => (await ownersOfRule(layout))[0]!;

const fence = (node: string): Promise<string> =>
  kubectl(layout, ['annotate', 'node', node, `${egressAnnotations.fenced}=off`, '--overwrite']);
const unfence = (node: string): Promise<string> =>
  kubectl(layout, ['annotate', 'node', node, `${egressAnnotations.fenced}-`]);

interface Seen {
  readonly carried: Carried;
  readonly doubles: readonly string[];
}

/** Datagrams of each family to the partner, while something happens. */
const talkDuring = async (act: () => Promise<void>): Promise<Seen> => {
  const flows: RunningFlow[] = [];
  for (const ip of partnerIps(layout)) flows.push(await startFlow(pod, { ip }, PER_SECOND));
  let carried: Carried | undefined;
  const holders = await holdersDuring(layout, admittedBlocks(layout), async () => {
    carried = await uplinksDuring(layout, selectedAlone(layout, selected), act);
  });
  for (const flow of flows) await flow.end();
  return { carried: carried!, doubles: doubleHolders(holders) };
};

/** Traffic stops; an operator says that the node is off, and the other one has the addresses, whatever the first does then. */
const loses = async (
  owner: string,
  { lose, comeBack }: { lose: () => Promise<void>; comeBack: () => Promise<void> },
): Promise<Seen> => {
  const other = OWNERS.find((name) => name !== owner)!;
  return talkDuring(async () => {
    await lose();
    console.log(`silent after ${await timeUntil('nobody answers for the addresses', nobodyAnswers, SILENT_MS)} ms`);
    expect(await seenAs()).toEqual(partnerIps(layout).map(() => undefined));
    await timeUntil('the rule says that its owner is silent', async () => !(await isRuleReady(layout)), MOVED_MS);
    expect(await currentOwner()).toBe(owner);
    await fence(owner);
    console.log(`moved after ${await timeUntil('the other node owns', isAdmitted, MOVED_MS)} ms`);
    expect(await currentOwner()).toBe(other);
    await comeBack();
    await delay(10_000);
    expect(await isAdmitted()).toBe(true);
  });
};

/** The addresses go back to the first, which is preferred: the other one confirms that it has released them. */
const settle = async (owner: string): Promise<void> => {
  await timeUntil('the agent is ready', () => agentReady(owner), 60_000);
  await unfence(owner);
  const isBack = async (): Promise<boolean> => (await currentOwner()) === owner && (await isRuleReady(layout));
  await timeUntil('the first node owns again', isBack, 60_000);
  await timeUntil('pods are admitted', isAdmitted, 30_000);
};

/** Packets with another source, and addresses at two nodes at a time. */
const harmOf = ({ carried, doubles }: Seen): string[] => [...carried.improper, ...doubles];

test('its agent stands still', { timeout: 400_000 }, async () => {
  const owner = await currentOwner();
  let goOn = (): Promise<void> => Promise.resolve();
  const seen = await loses(owner, {
    lose: async () => void (goOn = freezeAgent(owner, NODE_AGENT)),
    comeBack: () => goOn(),
  });
  await settle(owner);
  expect(harmOf(seen)).toEqual([]);
});

/** It reaches the partner, which is on the WAN, and nobody else. */
const alone = (node: string): Outage => {
  const [lan, wan] = [switchPort(layout, node, 'eth0'), switchPort(layout, node, 'eth1')];
  const table = `table bridge alone {
  chain forward { type filter hook forward priority 0
    iifname "${wan.port}" oifname != "${WAN.partnerPort}" drop
    oifname "${wan.port}" iifname != "${WAN.partnerPort}" drop
  }
}`;
  const setLan = (state: 'up' | 'down'): void => void run(['ip', '-n', lan.namespace, 'link', 'set', lan.port, state]);
  return {
    begin() {
      run([...inNamespace(wan.namespace), 'nft', '-f', '-'], { input: table });
      setLan('down');
    },
    end() {
      setLan('up');
      run([...inNamespace(wan.namespace), 'nft', 'delete', 'table', 'bridge', 'alone']);
    },
  };
};

test('it reaches nobody but the partner', { timeout: 400_000 }, async () => {
  const owner = await currentOwner();
  const outage = alone(owner);
  const seen = await loses(owner, { lose: async () => outage.begin(), comeBack: async () => outage.end() });
  await settle(owner);
  expect(harmOf(seen)).toEqual([]);
});

const setCables = (node: string, state: 'up' | 'down'): void => {
  for (const device of ['eth0', 'eth1']) {
    const { namespace, port } = switchPort(layout, node, device);
    run(['ip', '-n', namespace, 'link', 'set', port, state]);
  }
};

test('its power goes', { timeout: 400_000 }, async () => {
  const owner = await currentOwner();
  const seen = await loses(owner, {
    async lose() {
      setCables(owner, 'down');
      await turnOff(nodeOf(owner));
    },
    async comeBack() {
      setCables(owner, 'up');
      await turnOn(layout, nodeOf(owner));
    },
  });
  await settle(owner);
  expect(harmOf(seen)).toEqual([]);
});

test('it is shut down: its agents are told to end, and the network goes at once', { timeout: 400_000 }, async () => {
  const owner = await currentOwner();
  const seen = await loses(owner, {
    async lose() {
      const ended = NODE_APPS.map((app) => stopAgent(owner, app));
      setCables(owner, 'down');
      await Promise.all(ended);
    },
    async comeBack() {
      setCables(owner, 'up'); // its kernel has not forgotten anything
      await delay(5000);
      for (const app of NODE_APPS) await startAgent(layout, nodeOf(owner), app);
    },
  });
  await settle(owner);
  expect(harmOf(seen)).toEqual([]);
});
