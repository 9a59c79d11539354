import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { LINK_ALIAS, NFT_TABLE, PIN_FOLDER, ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { randomOf } from '@unbounded/testing/seeded-random';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stopAgent } from '../apps/agents.ts';
import { inClearOf, inWords } from './cleartext.ts';
import { kubectl } from '../kubernetes/control-plane.ts';
import { down } from '../substrate/down.ts';
import { layoutOf, namespaceOf, routerName } from '../layout/layout.ts';
import type { LabOptions } from '../layout/options.ts';
import { allHealthy } from './outages.ts';
import { isWireGuard, parsePcap } from './pcap.ts';
import { flowDuring, killAgent, podOn, startCapture, timeUntil } from './scenario.ts';
import { NODE_AGENT } from '../apps/tokens.ts';
import { up } from '../substrate/up.ts';
import { onNode, tryOnNode } from '../node/node.ts';
import { agentReady } from '../apps/agent-state.ts';
import { startAgent } from '../substrate/agents.ts';

/**
 * A site says WireGuard; whatever else is changed, restarted, wiped or taken away meanwhile, none of its packets is seen in
 * the clear, on its LAN or on the WAN. CLEARTEXT_SEED chooses the changes; it is printed.
 */

const SEED = Number(process.env['CLEARTEXT_SEED'] ?? Date.now() % 1_000_000);
const CHANGES = 20;
const NODE = 's1-w1';
const LABS: readonly [string, Partial<LabOptions>][] = [
  ['IPv4', {}],
  ['IPv4, kernel routes and next-hop groups', { dataplane: 'netlink' }],
  ['both families', { ip: 'dual' }],
  ['IPv6 alone', { ip: 'ipv6' }],
];

/** Changes of objects that may be made while Site s1 says WireGuard. */
const objects: readonly (readonly [kind: string, name: string, spec: object])[] = [
  ...['VXLAN', 'None', 'Auto', 'WireGuard'].map((tunnelProtocol) => ['site', 's2', { tunnelProtocol }] as const),
  ...['VXLAN', 'None', 'Auto'].flatMap((tunnelProtocol) => [
    ['gatewaypool', 's1-gateways', { tunnelProtocol }] as const,
    ['sitegatewaypoolassignment', 's1', { tunnelProtocol }] as const,
    ['gatewaypoolpeering', 'all', { tunnelProtocol }] as const,
  ]),
  ...[true, false].map((enabled) => ['gatewaypoolpeering', 'all', { enabled }] as const),
  ...[1300, 1400].map((tunnelMTU) => ['site', 's1', { tunnelMTU }] as const),
  ...[100, 1000].map((interval) => ['site', 's1', { healthCheckSettings: { transmitInterval: interval } }] as const),
];

/** Devices of ours on a node, but for the bridge that pods hang on. */
const ourDevices = (): string[] =>
  (JSON.parse(onNode(NODE, 'ip', '-j', 'link')) as { ifname: string; ifalias?: string }[])
    .filter(({ ifname, ifalias }) => ifalias === LINK_ALIAS && !ifname.startsWith('cbr'))
    .map(({ ifname }) => ifname);

/** The pods' ends at the node. */
const podPorts = (): string[] =>
  (JSON.parse(onNode(NODE, 'ip', '-j', 'link', 'show', 'type', 'veth')) as { ifname: string; master?: string }[])
    .filter(({ master }) => master !== undefined)
    .map(({ ifname }) => ifname);
const setPorts = (ports: readonly string[], state: 'up' | 'down'): void =>
  ports.forEach((port) => onNode(NODE, 'ip', 'link', 'set', port, state));

/**
 * What a boot is to us: nothing of ours in the kernel, the agent begins with what is on the disk, and pods are connected only
 * when it is ready (kubelet starts none before).
 */
const boot = async (layout: ReturnType<typeof layoutOf>): Promise<void> => {
  const ports = podPorts();
  await stopAgent(NODE, NODE_AGENT, 'SIGKILL');
  setPorts(ports, 'down');
  for (const device of ourDevices()) tryOnNode(NODE, 'ip', 'link', 'delete', device);
  for (const family of ['-4', '-6'])
    tryOnNode(NODE, 'ip', family, 'route', 'flush', 'table', 'all', 'proto', String(ROUTE_PROTOCOL));
  tryOnNode(NODE, 'ip', 'nexthop', 'flush', 'proto', String(ROUTE_PROTOCOL));
  tryOnNode(NODE, 'nft', 'delete', 'table', 'inet', NFT_TABLE);
  tryOnNode(NODE, 'rm', '-rf', PIN_FOLDER);
  await startAgent(
    layout,
    layout.nodes.find(({ name }) => name === NODE)!,
    NODE_AGENT,
  );
  await timeUntil(`the agent of ${NODE} is ready`, () => agentReady(NODE), 30_000);
  setPorts(ports, 'up');
};

type Change = readonly [what: string, make: () => Promise<void>];

const changesOf = (layout: ReturnType<typeof layoutOf>): readonly Change[] => {
  const onTheNode = (...argv: string[]): Change => [
    `${NODE}: ${argv.join(' ')}`,
    async () => void tryOnNode(NODE, ...argv),
  ];
  const route = (family: string): readonly string[] => [
    'ip',
    family,
    'route',
    'flush',
    'table',
    'all',
    'proto',
    String(ROUTE_PROTOCOL),
  ];
  const ofMachine: readonly Change[] = [
    ['the agent is killed and starts again', () => killAgent(layout, NODE, NODE_AGENT)],
    ['the node boots', () => boot(layout)],
    onTheNode('ip', 'link', 'delete', 'unbounded0'),
    onTheNode('ip', 'link', 'set', 'unbounded0', 'down'),
    onTheNode(...route('-4')),
    onTheNode(...route('-6')),
    onTheNode('nft', 'delete', 'table', 'inet', NFT_TABLE),
  ];
  const ofObjects = objects.map(([kind, name, spec]): Change => {
    const patch = ['patch', kind, name, '--type=merge', '-p', JSON.stringify({ spec })];
    return [`${kind}/${name} ${JSON.stringify(spec)}`, async () => void (await kubectl(layout, patch))];
  });
  // As often one as the other, though there are more objects.
  return [...ofObjects, ...ofMachine, ...ofMachine];
};

describe.each(LABS)('%s', (_, options) => {
  const layout = layoutOf({ protocol: 'WireGuard', ...options });
  const work = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
  const wires = [
    [namespaceOf(routerName('s1')), 'lan0', join(work, 'lan.pcap')],
    [namespaceOf('wan'), 'wan0', join(work, 'wan.pcap')],
  ] as const;

  beforeAll(async () => {
    await down();
    await up(layout);
    await allHealthy(layout, 60_000);
  }, 400_000);
  afterAll(async () => {
    await down();
    rmSync(work, { recursive: true, force: true });
  }, 60_000);

  test(`no cleartext during ${CHANGES} changes under traffic, seed ${SEED}`, { timeout: 600_000 }, async () => {
    console.log(`the same changes again: CLEARTEXT_SEED=${SEED}`);
    const random = randomOf(SEED);
    const choice = changesOf(layout);
    const [from, near, far] = [await podOn(layout, NODE), await podOn(layout, 's1-w2'), await podOn(layout, 's2-w1')];
    const stops = await Promise.all(wires.map(([namespace, device, file]) => startCapture(namespace, device, file)));
    const made: string[] = [];
    const change = async (): Promise<void> => {
      for (let count = 0; count < CHANGES; count++) {
        const [what, make] = choice[random(choice.length)]!;
        made.push(what);
        await make();
        await delay(1500);
      }
    };
    const seconds = 5 * CHANGES;
    const within = flowDuring({ from, to: near, seconds }, change);
    const across = flowDuring({ from, to: far, seconds }, () => Promise.resolve());
    await Promise.all([within, across]);
    for (const stop of stops) await stop();
    for (const [, device, file] of wires) {
      const packets = parsePcap(readFileSync(file));
      expect(packets.filter(isWireGuard).length, device).toBeGreaterThan(1000);
      expect([...new Set(packets.filter(inClearOf(layout)).map(inWords))], `${device}\n${made.join('\n')}`).toEqual([]);
    }
  });
});
