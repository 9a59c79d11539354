import { serveTcp, type TcpServer } from '@unbounded/testing/tcp-flows';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { applyPlan, giveUpAddresses, holdAddresses } from './egress-bed.testdata.ts';
import {
  ADDRESSES,
  addressOf,
  type EgressNetwork,
  FAMILIES,
  type Host,
  openEgressNetwork,
  type Place,
  PORT,
} from './egress-network.testdata.ts';
import { owns, planFor, pods, route } from './egress-plans.testdata.ts';
import type { PodRoute } from './plan/egress-plan.ts';

/** Egress on a node where kube-proxy, agents that masquerade and clients of pods do what they do. */

let network: EgressNetwork;
const servers: TcpServer[] = [];
beforeAll(async () => {
  network = await openEgressNetwork();
  for (const place of ['partner', 'gatewayPod', 'pod', 'other', 'gateway'] as const)
    servers.push(await serveTcp(['nsenter', `--net=${network.ns[place].path}`], PORT));
}, 30_000);
afterAll(async () => {
  for (const server of servers) server.end();
  await network.close();
});

const remote = [route('first', 'gateway')];
const apiServices = ['10.96.0.1', 'fd96::1'];
const steer = (routes: readonly PodRoute[]): Promise<void> =>
  applyPlan(network, 'worker', planFor('worker', { steered: [pods('pod', 'worker', routes)], apiServices }));
beforeEach(async () => {
  for (const node of ['worker', 'gateway'] as const) {
    network.run(node, 'sh', '-c', 'nft delete table inet others 2>/dev/null || true');
    network.output(node, 'conntrack', '-F');
  }
  giveUpAddresses(network, 'gateway', ['first']);
  await steer(remote);
  const translated = [pods('pod', 'worker', remote)];
  await applyPlan(network, 'gateway', planFor('gateway', { translated, addresses: owns('first') }));
  await holdAddresses(network, 'gateway', ['first']);
  network.sources('worker');
});

const asked = (from: Place, to: Host, timeoutSeconds?: number): Promise<string[]> =>
  Promise.all(FAMILIES.map((family) => network.ask(from, addressOf(to, family), timeoutSeconds)));
const NONE = ['none', 'none'];

/** Chains of others, in a table of both families. */
const others = (node: 'worker' | 'gateway', chain: string): void =>
  void network.input(node, ['nft', '-f', '-'], `table inet others {\nchain c {\n${chain}\n}\n}\n`);

describe('the API server outside of the cluster, by its Service', () => {
  const services = FAMILIES.map((family, index) => {
    const ip = family === 4 ? 'ip' : 'ip6';
    const to = family === 4 ? addressOf('elsewhere', 4) : `[${addressOf('elsewhere', 6)}]`;
    return `${ip} daddr ${apiServices[index]} tcp dport ${PORT} dnat ${ip} to ${to}:${PORT}`;
  });
  const askApi = (from: 'pod' | 'other'): Promise<string[]> =>
    Promise.all(apiServices.map((address) => network.ask(from, address)));
  beforeEach(() => others('worker', `type nat hook prerouting priority dstnat\n${services.join('\n')}\n`));

  test('sees a selected pod as it sees others: with the address of its node', async () => {
    expect(await askApi('other')).toEqual(ADDRESSES.worker);
    expect(await askApi('pod')).toEqual(ADDRESSES.worker);
    expect(await asked('pod', 'elsewhere')).toEqual(ADDRESSES.first);
  });

  test('is reached while nobody owns the egress address', async () => {
    await steer([route(undefined, 'gateway')]);
    expect(await askApi('pod')).toEqual(ADDRESSES.worker);
    expect(await asked('pod', 'elsewhere', 0.3)).toEqual(NONE);
  });
});

/** The partner has routes to pods of the gateway. */
test('a client that reaches pods by a route is answered, by those that a rule selects too', async () => {
  const own = [route('first', 'gateway')];
  const selected = pods('gatewayPod', 'gateway', own);
  network.run('partner', 'ip', '-6', 'route', 'replace', 'fd64:65::/32', 'via', addressOf('gateway', 6));
  const seen = ADDRESSES.partner.map(String);
  expect(await asked('partner', 'gatewayPod')).toEqual(seen);
  await applyPlan(network, 'gateway', planFor('gateway', { steered: [selected], addresses: owns('first') }));
  await holdAddresses(network, 'gateway', ['first']);
  expect(await asked('partner', 'gatewayPod')).toEqual(seen);
  expect(await asked('gatewayPod', 'partner')).toEqual(ADDRESSES.first);
});

test('who masquerades what pods send takes the source of no packet to the owner', async () => {
  const rules = [
    'ip saddr 100.65.0.0/16 ip daddr != 100.64.0.0/10 masquerade',
    'ip6 saddr fd64::/16 ip6 daddr != fd64::/16 masquerade',
  ];
  others('worker', `type nat hook postrouting priority srcnat\n${rules.join('\n')}\n`);
  expect(await asked('pod', 'partner')).toEqual(ADDRESSES.first);
  expect(await asked('other', 'partner')).toEqual(ADDRESSES.worker);
});

describe('what others open at the egress address by the translation of Services', () => {
  const NODE_PORT = 30_080;
  const open = (to: Host): Promise<string[]> => {
    const rules = FAMILIES.map((family) => {
      const target = family === 4 ? addressOf(to, 4) : `[${addressOf(to, 6)}]`;
      const ip = family === 4 ? 'ip' : 'ip6';
      return `meta nfproto ipv${family} fib daddr type local tcp dport ${NODE_PORT} dnat ${ip} to ${target}:${PORT}`;
    });
    others('gateway', `type nat hook prerouting priority dstnat\n${rules.join('\n')}\n`);
    const ask = (host: Host, timeoutSeconds?: number): Promise<string>[] =>
      ADDRESSES[host].map((address) => network.ask('partner', address, timeoutSeconds, NODE_PORT));
    return Promise.all([...ask('gateway'), ...ask('first', 0.5)]);
  };

  test.each(['gatewayPod', 'gateway'] as const)('reaches nobody: a NodePort that leads to %s', async (to) => {
    const before = await network.nodes.gateway.drops();
    expect(await open(to)).toEqual([...ADDRESSES.partner, ...NONE]);
    const after = await network.nodes.gateway.drops();
    expect(after['egress_unsolicited'] ?? 0).toBeGreaterThan(before['egress_unsolicited'] ?? 0);
  });
});
