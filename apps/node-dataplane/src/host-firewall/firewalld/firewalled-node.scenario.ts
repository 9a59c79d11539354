import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Attempt, passagesOf, questionsOf, shotOf } from '../../connectivity/kernel/boundary-attempts.testdata.ts';
import type { LabOptions } from '../../connectivity/kernel/boundary-lab.testdata.ts';
import { FAMILIES, NODE_PORTS } from '../../connectivity/kernel/boundary-network.testdata.ts';
import type { Section } from '../../section.port.ts';
import { type FirewalledNode, openFirewalledNode } from './firewalled-node.testdata.ts';

/** A node behind the real firewalld, packet by packet. */

const isStranger = ({ from, source }: Attempt): boolean =>
  from === 'wan' || (from === 'lan' && (source === 'stranger' || source === 'router'));
/** Ports of tunnels, and others. */
const PORTS_TRIED = [7000, 9000, 4789, 6081, 51_820, 51_821] as const;

/** @param options of the node */
export const testFirewalledNode = (options: LabOptions): void => {
  const passages = passagesOf(options).filter(({ arrives }) => arrives !== 'node');
  let node: FirewalledNode;
  let before: string[];
  let ofStrangers: string[];
  let section: Section | undefined;

  /** What a stranger reaches: pods, Services, and the node by any port. */
  const reachedByStrangers = async (): Promise<string[]> => {
    const seen: string[] = [];
    for (const { arrives: _, ...attempt } of passages.filter(isStranger))
      seen.push(`${attempt.what}: ${(await node.arrivals(attempt)).join()}`);
    for (const port of PORTS_TRIED) {
      seen.push(`LAN, ${port}: ${await node.reached({ from: 'lan', source: 'stranger', port })}`);
      seen.push(`WAN, ${port}: ${await node.reached({ from: 'wan', source: 'internet', port })}`);
    }
    return seen;
  };
  beforeAll(async () => {
    node = await openFirewalledNode(options);
    before = node.settings();
    ofStrangers = await reachedByStrangers();
  }, 60_000);
  afterAll(() => node.close());

  const openNow = async (): Promise<void> => {
    if (section) return;
    section = await node.open('Accept');
    const { report } = await section.pass();
    expect(report.problems).toEqual([]);
    expect(report.events!.map(({ reason }) => reason)).toEqual(['HostFirewallOpened']);
  };

  test('only reporting, nothing is changed, and the report says that the overlay is dropped', async () => {
    const reporting = await node.open('Report');
    const { report } = await reporting.pass();
    expect(report.problems.map(({ reason }) => reason)).toEqual(['HostFirewallBlocks']);
    expect(node.settings()).toEqual(before);
    await node.stop();
    for (const attempt of passages.filter(({ from, to }) => from === 'far' && to !== 'node'))
      expect(await node.arrivals(attempt), attempt.what).toEqual([]);
  });

  test('what belongs to the overlay passes, and strangers reach what they reached before', async () => {
    await openNow();
    for (const { arrives, ...attempt } of passages.filter((one) => !isStranger(one)))
      expect(await node.arrivals(attempt), attempt.what).toEqual([arrives, arrives]);
    expect(await reachedByStrangers()).toEqual(ofStrangers);
  });

  test('pods reach what is outside, and get its answers', async () => {
    await openNow();
    for (const question of questionsOf(options).filter(({ from }) => from === 'pod'))
      for (const family of FAMILIES)
        expect(await node.lab.ask(shotOf(node.lab, question, family)), question.what).not.toBe('');
  });

  test('a node that is linked with this one reaches Services here by the LAN', async () => {
    await openNow();
    const to = { what: 'a Service', from: 'lan', to: 'node', port: NODE_PORTS.local } as const;
    expect(await node.arrivals({ ...to, source: 'nearNode' })).toEqual(['pod', 'pod']);
  });

  test('the node itself is reached from pods and out of the overlay, and by tunnel packets of peers alone', async () => {
    await openNow();
    expect(await node.reached({ from: 'pod', source: 'ownPod' })).toBe(2);
    if (options.protocol === 'VXLAN') {
      expect(await node.reached({ from: 'lan', source: 'nearNode', port: 4789 })).toBeGreaterThan(0);
      expect(await node.reached({ from: 'lan', source: 'nearNode', port: 9000 })).toBe(0);
    }
  });

  test('uninstall leaves firewalld as it was', async () => {
    await openNow();
    await node.stop();
    await node.cleanUp();
    expect(node.settings()).toEqual(before);
  });
};
