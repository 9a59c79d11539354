import { serveTcp, type TcpServer } from '@unbounded/testing/tcp-flows';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { applyPlan, giveUpAddresses, holdAddresses } from './egress-bed.testdata.ts';
import {
  ADDRESSES,
  addressOf,
  type EgressNetwork,
  FAMILIES,
  openEgressNetwork,
  PORT,
} from './egress-network.testdata.ts';
import { owns, planFor, pods, route } from './egress-plans.testdata.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/** Egress addresses with routers of their own, on nodes whose own routes lead to a router that is not there. */

let network: EgressNetwork;
let server: TcpServer;
const NODES = ['worker', 'gateway'] as const;
const ABSENT = ['10.1.0.77', 'fd00:1::77'];

beforeAll(async () => {
  network = await openEgressNetwork();
  server = await serveTcp(['nsenter', `--net=${network.ns.partner.path}`], PORT);
  for (const node of NODES)
    for (const [index, router] of ABSENT.entries())
      network.run(node, 'ip', index === 0 ? '-4' : '-6', 'route', 'replace', 'default', 'via', router);
}, 30_000);
afterAll(async () => {
  server.end();
  await network.close();
});
beforeEach(async () => {
  network.run('partner', 'ip', 'neigh', 'flush', 'dev', 'lan'); // it may have the address of another owner
  for (const node of NODES) {
    giveUpAddresses(network, node, ['first']);
    await applyPlan(network, node, planFor(node));
  }
});

/** The partner is the router. */
const withRouter = (device = 'eth0'): EgressPlan['addresses'] =>
  owns('first').map((one, index) => ({ ...one, nextHop: { router: ADDRESSES.partner[index]!, device } }));
const answered = (): Promise<string[]> =>
  Promise.all(FAMILIES.map((family) => network.ask('pod', addressOf('elsewhere', family), 0.3)));
const asked = (): Promise<string[]> =>
  Promise.all(FAMILIES.map((family) => network.ask('pod', addressOf('elsewhere', family))));
const isElsewhere = (text: string): boolean => (ADDRESSES.elsewhere as readonly string[]).includes(text);
const NONE = ['none', 'none'];

const places = [
  [
    'on another node',
    async (addresses: EgressPlan['addresses']) => {
      const routes = [route('first', 'gateway')];
      await applyPlan(network, 'worker', planFor('worker', { steered: [pods('pod', 'worker', routes)] }));
      const translated = [pods('pod', 'worker', routes)];
      await applyPlan(network, 'gateway', planFor('gateway', { translated, addresses }));
      await holdAddresses(network, 'gateway', ['first']);
    },
  ],
  [
    'on the node of the pod',
    async (addresses: EgressPlan['addresses']) => {
      const steered = [pods('pod', 'worker', [route('first', 'worker')])];
      await applyPlan(network, 'worker', planFor('worker', { steered, addresses }));
      await holdAddresses(network, 'worker', ['first']);
    },
  ],
] as const;

test.each(places)('packets leave by the router of their address: the owner is %s', async (_, own) => {
  await own(owns('first'));
  expect(await answered()).toEqual(NONE);
  await own(withRouter());
  expect(await asked()).toEqual(ADDRESSES.first);
  await own(owns('first'));
  expect(await answered()).toEqual(NONE);
});

test.each(places)('without the device of the router nothing leaves: the owner is %s', async (_, own) => {
  await own(withRouter('eth9'));
  for (const node of NODES) network.sources(node);
  expect(await answered()).toEqual(NONE);
  // Answers to the tests before are sent again, and find nobody.
  const sources = NODES.flatMap((node) => network.sources(node)).filter((text) => !isElsewhere(text));
  expect(sources).toEqual([]);
});
