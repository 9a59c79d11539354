import { createConntrack, type Conntrack } from '@unbounded/netlink';
import { createMetrics, type Metrics, silentLogger as logger } from '@unbounded/telemetry';
import { until } from '@unbounded/testing';
import { serveTcp, type TcpServer } from '@unbounded/testing/tcp-flows';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ensureAddresses } from '../addresses.ts';
import {
  ADDRESSES,
  addressOf,
  type EgressNetwork,
  FAMILIES,
  openEgressNetwork,
  PORT,
} from '../egress-network.testdata.ts';
import { owns, planFor, pods, route } from '../egress-plans.testdata.ts';
import { createFence } from '../fence.ts';
import { createEgressKernel } from '../kernel/egress-kernel.ts';
import { ALWAYS } from '../ownership.ts';
import { countedRoutes } from '../plan/counted-routes.plan.ts';
import type { EgressPlan, PodClass, PodRoute } from '../plan/egress-plan.ts';
import { PORTS_OF_ADDRESS } from './port-usage.plan.ts';
import { createObservations, type Observations } from './observations.ts';

/** What is seen at an owner of packets that really pass. */

const THRESHOLD = 20 / PORTS_OF_ADDRESS;

let network: EgressNetwork;
let server: TcpServer;
let conntrack: Conntrack;
beforeAll(async () => {
  network = await openEgressNetwork();
  server = await serveTcp(['nsenter', `--net=${network.ns.partner.path}`], PORT);
  conntrack = createConntrack({ netnsFd: network.ns.gateway.fd });
}, 30_000);
afterAll(async () => {
  conntrack.close();
  server.end();
  await network.close();
});

let metrics: Metrics;
let observations: Observations;
let passes = 0;
beforeEach(() => {
  metrics = createMetrics();
  passes = 0;
  observations = createObservations(
    { metrics, logger, trigger: () => void passes++ },
    { conntrack, fence: { lapsed: () => new Set() }, timings: { everyMs: 0, threshold: THRESHOLD } },
  );
});

const ruled = (rule: string, more: Partial<PodRoute> = {}): PodRoute =>
  route('first', 'gateway', { rule: `StaticEgressIP/shop/${rule}/0`, ...more });

/** The gateway as its agent does it, with the packets counted. */
const serve = async (remote: readonly PodRoute[], own: readonly PodRoute[] = []): Promise<EgressPlan> => {
  const steered: PodClass[] = own.length === 0 ? [] : [pods('gatewayPod', 'gateway', own)];
  const plan = planFor('gateway', {
    translated: [pods('pod', 'worker', remote)],
    steered,
    addresses: owns('first'),
  });
  observations.traffic.planned(countedRoutes(plan));
  const { net, table } = network.nodes.gateway;
  const outcome = await createEgressKernel({ net, table, counts: observations.traffic }).apply(plan);
  expect(outcome).toEqual({ problems: [], isInForce: true });
  await ensureAddresses(net, plan.addresses, new Set(), { stateOf: () => 'free' });
  const fence = createFence({ table, ownership: ALWAYS, logger, holdMs: 60_000 });
  await fence.hold(new Set(ADDRESSES.first), performance.now());
  fence.stop();
  return plan;
};
const steer = async (routes: readonly PodRoute[]): Promise<void> => {
  const { net, table } = network.nodes.worker;
  await createEgressKernel({ net, table }).apply(planFor('worker', { steered: [pods('pod', 'worker', routes)] }));
};

type Kind = 'packets' | 'bytes';
/** By rule, address and direction. */
const seen = async (kind: Kind = 'packets'): Promise<Readonly<Record<string, number>>> =>
  Object.fromEntries(
    [...(await metrics.render()).matchAll(/^unbounded_egress_rule_(\w+)_total\{(.*)\} (\d+)$/gm)]
      .filter((found) => found[1] === kind)
      .map(([, , labels, value]) => [
        labels!.replaceAll(/"|StaticEgressIP.shop.|\/0|rule=|address=|direction=/g, ''),
        Number(value),
      ]),
  );
const ping = (from: 'pod' | 'gatewayPod', host: 'partner' | 'elsewhere', count: number): void => {
  for (const family of FAMILIES)
    network.run(from, 'ping', '-qn', `-c${count}`, '-i0.05', '-w5', addressOf(host, family));
};

test('packets and bytes are counted by rule, address and direction; rest and other rules take nothing away', async () => {
  const web = ruled('web');
  await steer([web]);
  await serve([web]);
  ping('pod', 'partner', 3);
  await serve([web]);
  const [v4, v6] = ADDRESSES.first;
  const three = { [`web,${v4},out`]: 3, [`web,${v4},in`]: 3, [`web,${v6},out`]: 3, [`web,${v6},in`]: 3 };
  expect(await seen()).toEqual(three);
  // IP header, that of ICMP, 56 bytes of data.
  expect(await seen('bytes')).toMatchObject({ [`web,${v4},out`]: 3 * 84, [`web,${v6},in`]: 3 * 104 });

  let changes = 0;
  const watch = network.nodes.gateway.nft.monitor('inet', 'unbounded_egress', { onChange: () => void changes++ });
  for (let pass = 0; pass < 3; pass++) await serve([web]);
  expect(await seen()).toEqual(three);
  expect(changes).toBe(0);

  // Packets of before the change that nobody had looked at yet, and those behind it.
  ping('pod', 'partner', 2);
  const api = ruled('api', { destinations: ['198.51.100.0/24', '2001:db8:51::/48'], except: ['198.51.100.128/25'] });
  await serve([api, web]);
  await until('the change is heard of', () => changes > 0);
  watch.close();
  expect(await seen()).toMatchObject({ [`web,${v4},out`]: 5, [`web,${v6},in`]: 5, [`api,${v4},out`]: 0 });
  await steer([api, web]);
  ping('pod', 'elsewhere', 4);
  ping('pod', 'partner', 1);
  await serve([api, web]);
  expect(await seen()).toEqual({
    ...{ [`web,${v4},out`]: 6, [`web,${v4},in`]: 6, [`web,${v6},out`]: 6, [`web,${v6},in`]: 6 },
    ...{ [`api,${v4},out`]: 4, [`api,${v4},in`]: 4, [`api,${v6},out`]: 4, [`api,${v6},in`]: 4 },
  });
}, 30_000);

test('those of pods at the owner itself are counted, too, and what is dropped is not', async () => {
  const own = ruled('own');
  await steer([]);
  await serve([ruled('remote')], [own]);
  ping('gatewayPod', 'partner', 2);
  for (const family of FAMILIES) network.output('partner', 'ping', '-qc1', '-w1', addressOf('first', family));
  await serve([ruled('remote')], [own]);
  const [v4, v6] = ADDRESSES.first;
  expect(await seen()).toMatchObject({
    ...{ [`own,${v4},out`]: 2, [`own,${v4},in`]: 2, [`own,${v6},out`]: 2, [`own,${v6},in`]: 2 },
    ...{ [`remote,${v4},out`]: 0, [`remote,${v4},in`]: 0 },
  });
});

/** Datagrams from so many ports, each a connection. */
const SEND_MANY = `use IO::Socket::IP;
for my $port (20000 .. 19999 + $ARGV[2]) {
  IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], LocalPort => $port, Proto => "udp", Type => SOCK_DGRAM)->send("x");
}`;
const connect = (count: number): void => {
  for (const family of FAMILIES)
    network.run('pod', 'perl', '-e', SEND_MANY, addressOf('elsewhere', family), String(PORT), String(count));
};

test('ports in use are seen by address, and a problem names destination and count from the threshold on', async () => {
  const web = ruled('web');
  await steer([web]);
  const plan = await serve([web]);
  const held = new Set<string>(ADDRESSES.first);
  const share = async (): Promise<string[]> =>
    [...(await metrics.render()).matchAll(/^unbounded_egress_ports_used_ratio(\{.*)$/gm)].map(([, text]) => text!);
  const shown = (ports: number) =>
    ADDRESSES.first.map((address) => `{address="${address}"} ${ports / PORTS_OF_ADDRESS}`);
  const looked = async (ports: number): Promise<void> => {
    await until('the ports are counted', async () => {
      observations.passed(plan, held);
      return (await share()).join() === shown(ports).join();
    });
  };
  connect(15);
  await looked(15);
  expect([observations.problems(), passes]).toEqual([[], 0]);
  expect(await metrics.render()).toContain(`unbounded_egress_address_held{address="${ADDRESSES.first[0]}"} 1`);
  connect(25); // fifteen of these are there already
  await looked(25);
  expect(observations.problems()).toEqual(
    ADDRESSES.first.map((address, index) => ({
      reason: 'EgressPortsExhausting',
      message: expect.stringContaining(
        `egress address ${address}: at least 25 of its 64512 ports are in use to UDP ${['198.51.100.7', '[2001:db8:51::7]'][index]}:${PORT}`,
      ),
    })),
  );
  const before = passes;
  expect(before).toBeGreaterThan(0);
  await until('nothing is held any more', async () => {
    observations.passed(plan, new Set());
    return (await share()).length === 0;
  });
  expect([observations.problems(), passes]).toEqual([[], before + 1]);
});
