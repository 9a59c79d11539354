import { openTcpFlows, serveTcp, type TcpFlows } from '@unbounded/testing/tcp-flows';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { down } from '../substrate/down.ts';
import { type LabNode, layoutOf } from '../layout/layout.ts';
import { inNode, onNode } from '../node/node.ts';
import { allHealthy, powerOff, setProbing } from './outages.ts';
import { inPodNetwork, podOn, timeUntil } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { peerStates } from '../apps/agent-state.ts';

/** Connections from pods, and from the node of the API server, to the nodes of the other site: a gateway at either end fails. */

const PORT = 10_999;
const FLOWS = 20;

describe.each(['ebpf', 'netlink'] as const)('%s', (dataplane) => {
  const layout = layoutOf({ gateways: 2, workers: 2, dataplane });
  const nodeNamed = (name: string): LabNode => layout.nodes.find((node) => node.name === name)!;
  const gateways = layout.nodes.filter(({ role }) => role === 'gateway');
  const ending: { end(): void }[] = [];
  const opened = new Map<string, TcpFlows>();

  beforeAll(async () => {
    await down();
    await up(layout);
    await setProbing(layout, 100, 3);
    await allHealthy(layout, 60_000);
    // Gateways tell each other by the API server that they take nodes' addresses.
    for (const { name } of gateways)
      await timeUntil(
        `${name} sends by the tunnels`,
        () =>
          onNode(name, 'ip', 'rule').includes('lookup 251') &&
          onNode(name, 'nft', 'list', 'table', 'inet', 'unbounded').includes('chain transit'),
        60_000,
      );
  }, 300_000);
  afterAll(async () => {
    for (const one of ending) one.end();
    await down();
  }, 60_000);

  test('nodes see the sender’s own address', { timeout: 120_000 }, async () => {
    for (const node of ['s1-w2', 's2-w1', 's2-g1']) ending.push(await serveTcp(inNode(node), PORT));
    const open = async (from: string, within: readonly string[], to: string): Promise<TcpFlows> => {
      const flows = await openTcpFlows(within, { host: nodeNamed(to).internalIp, port: PORT, count: FLOWS });
      ending.push(flows);
      opened.set(`${from} to ${to}`, flows);
      expect(flows.sources).toHaveLength(FLOWS);
      return flows;
    };
    const [near, far] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w2')];
    expect(new Set((await open('a pod of s1-w1', inPodNetwork(near), 's2-w1')).sources)).toEqual(new Set([near.ip]));
    expect(new Set((await open('a pod of s2-w2', inPodNetwork(far), 's1-w2')).sources)).toEqual(new Set([far.ip]));
    for (const to of ['s2-w1', 's2-g1']) {
      const { sources } = await open('s1-cp', inNode('s1-cp'), to);
      const own = onNode('s1-cp', 'ip', '-br', 'addr');
      for (const source of new Set(sources)) expect(own).toContain(` ${source}/`);
    }
  });

  // The gateway s2-g1 is an end itself.
  test.each(gateways.map(({ name }) => name).filter((name) => name !== 's2-g1'))(
    `while %s is off, ${FLOWS} of ${FLOWS} connections go on`,
    { timeout: 180_000 },
    async (name) => {
      const alive = async (): Promise<Record<string, number>> =>
        Object.fromEntries(
          await Promise.all([...opened].map(async ([what, flows]) => [what, await flows.alive()] as const)),
        );
      const all = Object.fromEntries([...opened.keys()].map((what) => [what, FLOWS]));
      expect(opened.size).toBe(4);
      await allHealthy(layout, 60_000);
      expect(await alive()).toEqual(all);
      const outage = powerOff(layout, nodeNamed(name));
      outage.begin();
      try {
        await timeUntil(
          `${name} is seen as off`,
          () => gateways.every((other) => other.name === name || (peerStates(other.name)['Unhealthy'] ?? 0) > 0),
          30_000,
        );
        expect(await alive()).toEqual(all);
      } finally {
        outage.end();
      }
      await allHealthy(layout, 60_000);
      expect(await alive()).toEqual(all);
    },
  );
});
