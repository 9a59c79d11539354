import { setTimeout as delay } from 'node:timers/promises';
import { annotations } from '@unbounded/crds';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { kubectl } from '../kubernetes/control-plane.ts';
import { down } from '../substrate/down.ts';
import { layoutOf } from '../layout/layout.ts';
import type { LabOptions, Protocol } from '../layout/options.ts';
import { allHealthy } from './outages.ts';
import { restartPods, rollbackPods, upgradePods } from '../apps/chart.ts';
import { withoutApiServer } from './restarts.ts';
import { type FlowReport, podOn, startFlow, timeUntil } from './scenario.ts';
import { up } from '../substrate/up.ts';
import { verify } from '../cli/verify.ts';
import { onNode } from '../node/node.ts';

/** What operators do every week loses nothing, however the sites are joined: a lab of pods for each way. */

const TOPOLOGIES: readonly [string, Partial<LabOptions>][] = [
  ['two gateways in each of two sites', { gateways: 2, workers: 1 }],
  ['three sites in a chain, with transit through the middle', { sites: 3, workers: 1, topology: 'chain' }],
  ['a mesh of all nodes over routed LANs, without gateways', { gateways: 0, workers: 1, topology: 'mesh' }],
  ['Internal pools, whose gateways have no external address', { workers: 1, topology: 'internal' }],
  ['both families', { workers: 1, ip: 'dual' }],
  ['IPv6 alone', { workers: 1, ip: 'ipv6' }],
  ['kernel routes and next-hop groups instead of eBPF', { gateways: 2, workers: 1, dataplane: 'netlink' }],
];

/** Until the last step of a change of protocol is over (apps/node-dataplane, transitions.ts). */
const SETTLED_MS = 30_000;

/** What a disturbance left behind may show itself after its end: objects are read anew when the API server is back. */
const AFTER_MS = 20_000;

describe.each(TOPOLOGIES)('%s', (_, options) => {
  const layout = layoutOf({ protocol: 'VXLAN', agents: 'pods', ...options });
  const last = layout.sites.at(-1)!.name;

  beforeAll(async () => {
    await down();
    await up(layout);
    await allHealthy(layout, 60_000);
  }, 400_000);
  afterAll(down, 60_000);

  /** What is lost between the first and the last site while something happens that says what it does, and after it: nothing, best. */
  const lostDuring = async (disturb: (begins: (phase: string) => void) => Promise<void>, toNode = `${last}-w1`) => {
    const flow = await startFlow(await podOn(layout, 's1-w1'), await podOn(layout, toNode));
    const began = Date.now();
    let report: FlowReport;
    const phases: string[] = [];
    const begins = (phase: string): void => void phases.push(`${Date.now() - began} ms: ${phase}`);
    try {
      await disturb(begins);
      begins('the end');
      await delay(AFTER_MS);
    } finally {
      console.log(phases.join('\n'));
      report = await flow.end();
    }
    const { losses, lost } = report;
    return [
      ...losses.map(({ atMillis, firstNumber, lastNumber }) => `${lastNumber - firstNumber + 1} at ${atMillis} ms`),
      ...(lost > 0 ? [`${lost} in all`, ...phases] : []),
    ];
  };

  /** Routed LANs know nothing of pods: only within one can they do without a tunnel. */
  const isRouted = options.topology === 'mesh';
  const change = async (protocol: Protocol): Promise<void> => {
    const patch = JSON.stringify({ spec: { tunnelProtocol: protocol } });
    for (const kind of isRouted ? ['sites'] : ['sites', 'sitepeerings']) {
      const names = (await kubectl(layout, ['get', kind, '-o', 'name'])).split('\n').filter(Boolean);
      for (const name of names) await kubectl(layout, ['patch', name, '--type=merge', '-p', patch]);
    }
  };

  test('every pod reaches every pod, node and Service, and the outside world', { timeout: 240_000 }, async () => {
    expect(await verify(layout)).toBe(true);
  });

  test('agents deleted one after the other, an update to the next version and back', { timeout: 400_000 }, async () => {
    const lost = await lostDuring(async (begins) => {
      for (const { name } of layout.nodes.filter(
        ({ role, site }) => role !== 'control-plane' && ['s1', last].includes(site),
      )) {
        begins(`the agent of ${name} is deleted`);
        await restartPods(layout, 'node-dataplane', name);
      }
      begins('update');
      await upgradePods(layout);
      begins('and back');
      await rollbackPods(layout);
    });
    expect(lost).toEqual([]);
  });

  test('a change of protocol from VXLAN to None and back', { timeout: 200_000 }, async () => {
    const changeThere = async (begins: (phase: string) => void): Promise<void> => {
      for (const protocol of ['None', 'VXLAN'] as const) {
        begins(protocol);
        await change(protocol);
        await delay(SETTLED_MS);
      }
    };
    const lost = await lostDuring(changeThere, isRouted ? layout.controlPlane.name : undefined);
    expect(lost).toEqual([]);
  });

  test('an exchange of the WireGuard keys of all nodes', { timeout: 300_000 }, async () => {
    const lost = await lostDuring(async (begins) => {
      begins('all nodes are asked');
      await kubectl(layout, ['annotate', 'nodes', '--all', `${annotations.rotateWireGuardKey}=${Date.now()}`]);
      const isComplete = async (): Promise<boolean> => {
        const { items } = JSON.parse(await kubectl(layout, ['get', 'nodes', '-o', 'json'])) as {
          items: { metadata: { annotations: Record<string, string> } }[];
        };
        return items.every(
          ({ metadata }) =>
            metadata.annotations[annotations.wireGuardKeyGeneration] === '1' &&
            !metadata.annotations[annotations.wireGuardNextPublicKey],
        );
      };
      await timeUntil('every node has its next key', isComplete, 75_000);
      for (const { name } of layout.nodes)
        await timeUntil(
          `${name} has no interface of a former key`,
          () => !/^wg(51820|5182\d) /m.test(onNode(name, 'ip', '-br', 'link')),
          15_000,
        );
    });
    expect(lost).toEqual([]);
  });

  test('agents that end while the API server is away', { timeout: 200_000 }, async () => {
    const lost = await lostDuring((begins) =>
      withoutApiServer(layout, async () => {
        for (const { name } of layout.nodes) {
          begins(`the agent of ${name} ends`);
          onNode(name, 'pkill', '-KILL', '-f', '^/usr/bin/node .*/unbounded/apps/node-dataplane');
          await delay(1000);
        }
      }),
    );
    expect(lost).toEqual([]);
  });
});
