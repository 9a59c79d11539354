import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { annotations } from '@unbounded/crds';
import { NAMESPACE } from '@unbounded/testing/chart';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PLANS } from '../../layout/addresses.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { stopDaemon } from '../../machine/daemon.ts';
import { down } from '../../substrate/down.ts';
import { layoutOf, namespaceOf, routerName, WAN } from '../../layout/layout.ts';
import { allHealthy } from '../outages.ts';
import { blockUdp, peersByPath, RELAY_DAEMON, relayChecks } from '../../features/relay/relay.ts';
import { podOn, timeUntil } from '../scenario.ts';
import { up } from '../../substrate/up.ts';
import { routerAttempts } from './boundary.attempts.ts';
import { documentedPorts, openPorts, openPortsOf, type OpenPort } from './open-ports.ts';
import {
  innerRelayAttempts,
  lanAttempts,
  ownNameAttempts,
  portAttempts,
  relayAttempts,
  spoofAttempts,
  tunnelAttempts,
} from './stranger.attempts.ts';
import { makeStranger, type Stranger } from './strangers.ts';
import { IN_VAIN, judged, whileFlowing } from './while-flowing.ts';
import { agentReady } from '../../apps/agent-state.ts';

/**
 * Hosts without credentials, one on the WAN and one on a site's LAN, try what they can at the relay of the cluster and at every open
 * port. At first routers drop UDP, so that what passes between the sites goes through that relay; later they let it pass.
 */

const layout = layoutOf({ sites: 2, workers: 2, agents: 'pods', blockUdp: 'all' });
const folder = mkdtempSync(join(tmpdir(), 'unbounded-lab-'));
const nodeNamed = (name: string) => layout.nodes.find((node) => node.name === name)!;

let relay: { readonly node: string; readonly host: string; readonly port: number };

const relayPod = async (): Promise<string | undefined> => {
  const args = ['get', 'pods', '-n', NAMESPACE, '-l', 'app.kubernetes.io/name=relay', '-o', 'json'];
  const { items } = JSON.parse(await kubectl(layout, args)) as { items: { spec: { nodeName?: string } }[] };
  return items[0]?.spec.nodeName;
};

beforeAll(async () => {
  await down();
  await up(layout);
  await stopDaemon(RELAY_DAEMON, 0);
  const managed = { spec: { relay: { provider: 'managed', managed: { serviceType: 'NodePort', replicas: 1 } } } };
  await kubectl(layout, ['patch', 'mesh', 'default', '--type=merge', '-p', JSON.stringify(managed)]);
  await timeUntil('a relay has a node', async () => (await relayPod()) !== undefined, 60_000);
  await timeUntil('every node is connected to it', () => relayChecks(layout).every(({ ok }) => ok), 90_000);
  await allHealthy(layout, 60_000);
  const { spec } = JSON.parse(await kubectl(layout, ['get', 'service', 'relay', '-n', NAMESPACE, '-o', 'json'])) as {
    spec: { ports: { nodePort: number }[] };
  };
  const node = (await relayPod())!;
  relay = { node, host: nodeNamed(node).external!.ip, port: spec.ports[0]!.nodePort };
}, 500_000);
afterAll(async () => {
  await down();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

/** What is Kubernetes' own, and open with or without us: kube-proxy, kube-controller-manager, kube-scheduler. */
const OF_KUBERNETES = new Set([10_256, 10_257, 10_259]);

test('no node and no relay listens anywhere but where docs/operations.md says', () => {
  const known = documentedPorts();
  const isKnown = ({ protocol, port }: OpenPort): boolean =>
    known.some((entry) => entry.protocol === protocol && port >= entry.from && port <= entry.to) ||
    (protocol === 'tcp' && OF_KUBERNETES.has(port));
  const census = [
    ...layout.nodes.map((node) => [node.name, openPorts(node)] as const),
    ['relay', openPortsOf(relay.node, '/unbounded/apps/relay/')] as const,
  ];
  console.log(
    census
      .map(
        ([name, ports]) =>
          `${name}: ${ports.map(({ protocol, port, address }) => `${protocol} ${address}:${port}`).join(', ')}`,
      )
      .join('\n'),
  );
  expect(
    census.flatMap(([name, ports]) => ports.filter((port) => !isKnown(port)).map((port) => ({ name, ...port }))),
  ).toEqual([]);
  for (const [name, ports] of census) expect(`${name}: ${ports.length > 0}`).toBe(`${name}: true`);
  // Metrics and readiness never on all addresses.
  const metrics = census.flatMap(([name, ports]) =>
    name === 'relay' ? [] : ports.filter(({ port }) => port >= 9988 && port <= 9999 && port !== 9997),
  );
  expect(metrics.filter(({ address }) => address === '*')).toEqual([]);
  expect(metrics.length).toBeGreaterThanOrEqual(layout.nodes.length);
});

/** None of them has an end on the node of the relay: between the sites they pass through it all the same. */
const FLOWS = [
  ['s1-w1', 's1-w2'],
  ['s1-w2', 's2-w1'],
  ['s2-w2', 's1-w1'],
] as const;

const memberKey = async (): Promise<string> => {
  const { metadata } = JSON.parse(await kubectl(layout, ['get', 'node', 's1-g1', '-o', 'json'])) as {
    metadata: { annotations: Record<string, string> };
  };
  return metadata.annotations[annotations.wireGuardPublicKey]!;
};

/** Whoever was attacked runs as before: no container has ended, and every agent answers. */
const expectUnharmed = async (): Promise<void> => {
  const { items } = JSON.parse(await kubectl(layout, ['get', 'pods', '-n', NAMESPACE, '-o', 'json'])) as {
    items: { metadata: { name: string }; status: { containerStatuses?: { restartCount: number; ready: boolean }[] } }[];
  };
  const broken = items.filter(({ status }) =>
    status.containerStatuses?.some(({ restartCount, ready }) => restartCount > 0 || !ready),
  );
  expect(broken.map(({ metadata }) => metadata.name)).toEqual([]);
  expect(layout.nodes.filter(({ name }) => !agentReady(name)).map(({ name }) => name)).toEqual([]);
  expect(relayChecks(layout).filter(({ ok }) => !ok)).toEqual([]);
};

const strangerOnWan = (): Stranger =>
  makeStranger({
    name: 'stranger-wan',
    bridge: { namespace: namespaceOf(WAN.name), name: 'wan0' },
    address: `${PLANS[4].wanHost(66)}/${PLANS[4].wanLength}`,
  });
let onWan: Stranger;

test('a stranger at the relay harms no flow that passes through it', { timeout: 900_000 }, async () => {
  onWan = strangerOnWan();
  const attempts = [
    ...relayAttempts(onWan, { host: relay.host, port: relay.port, memberKey: await memberKey() }),
    ...innerRelayAttempts(onWan, relay.host),
  ];
  console.log(`${attempts.length} attempts`);
  expect(attempts.length).toBeGreaterThanOrEqual(25);
  expect(judged(await whileFlowing(attempts, { layout, flows: FLOWS, victims: [], folder }))).toEqual(IN_VAIN);
  expect(peersByPath('s1-g1').direct).toBe(0);
  await expectUnharmed();
});

test('a stranger on the WAN harms no flow, and gets in nowhere', { timeout: 900_000 }, async () => {
  // Its datagrams are to reach the gateways too: no router drops them any more, and the sites find their direct path.
  blockUdp({ ...layout, options: { ...layout.options, blockUdp: 'none' } });
  const gateways = layout.nodes.filter(({ role }) => role === 'gateway');
  await timeUntil(
    'gateways have gone direct',
    () => gateways.every(({ name }) => peersByPath(name).direct > 0),
    60_000,
  );
  const reachable = layout.nodes.filter(({ external }) => external !== undefined);
  const [victim, bystander] = [await podOn(layout, 's1-g1'), await podOn(layout, 's2-w1')];
  const behind = [await podOn(layout, 's1-w2'), bystander];
  const plain = { stranger: onWan, by: nodeNamed('s1-g1'), device: 'eth1' };
  const attempts = [
    ...portAttempts(
      onWan,
      reachable.map((node) => ({ host: node.external!.ip, ports: openPorts(node) })),
    ),
    ...tunnelAttempts(onWan, {
      nodes: reachable.map((node) => ({ node, address: node.external!.ip })),
      victim,
      bystander,
    }),
    ...spoofAttempts(plain, { victim, bystander }),
    ...ownNameAttempts(plain, behind),
    ...routerAttempts(plain, [bystander.ip, nodeNamed('s2-w2').internalIp]),
  ];
  console.log(`${attempts.length} attempts`);
  expect(attempts.length).toBeGreaterThanOrEqual(20);
  const beside = { layout, flows: FLOWS, victims: [victim, ...behind], folder };
  expect(judged(await whileFlowing(attempts, beside))).toEqual(IN_VAIN);
  await expectUnharmed();
});

test('a stranger on a site’s LAN harms no flow, and gets in nowhere', { timeout: 900_000 }, async () => {
  const [site] = layout.sites;
  const stranger = makeStranger({
    name: 'stranger-lan',
    bridge: { namespace: namespaceOf(routerName(site!.name)), name: 'lan0' },
    address: `${PLANS[4].lanHost(1, 66)}/${PLANS[4].lanLength}`,
    gateway: site!.routerLanIps[0]!,
  });
  const [victim, bystander] = [await podOn(layout, 's1-w2'), await podOn(layout, 's2-w1')];
  const targets = { nodes: site!.nodes.map((node) => ({ node, address: node.internalIp })), victim, bystander };
  const plain = { stranger, by: nodeNamed(victim.node), device: 'eth0' };
  const attempts = [
    ...portAttempts(
      stranger,
      site!.nodes.map((node) => ({ host: node.internalIp, ports: openPorts(node) })),
    ),
    ...tunnelAttempts(stranger, targets),
    ...spoofAttempts(plain, targets),
    ...ownNameAttempts(plain, [bystander]),
    ...routerAttempts({ ...plain, by: nodeNamed('s1-g1') }, [bystander.ip, nodeNamed('s2-w2').internalIp]),
    ...lanAttempts(stranger, targets),
  ];
  console.log(`${attempts.length} attempts`);
  expect(attempts.length).toBeGreaterThanOrEqual(15);
  expect(judged(await whileFlowing(attempts, { layout, flows: FLOWS, victims: [victim, bystander], folder }))).toEqual(
    IN_VAIN,
  );
  await expectUnharmed();
});
