import { setTimeout as delay } from 'node:timers/promises';
import { DEVICES, EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { verify } from '../../cli/verify.ts';
import { admittedBlocks, PARTNER_PORTS, partnerIps } from '../../features/partner/layout.ts';
import { layoutOf } from '../../layout/layout.ts';
import { onNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { probePods } from '../../substrate/probes.ts';
import { restartEverything } from '../restarts.ts';
import { startFlow, timeUntil } from '../scenario.ts';
import { beginChanges, changeSomething, endChanges, type Ground, randomNumbers, secondBlocks } from './changes.ts';
import { doubleHolders, holdersDuring } from './holders.ts';
import { isRuleReady, upWithRule } from './rule.ts';
import { seenByPartnerAs } from './traffic.ts';
import { type Carried, selectedByPort, uplinksDuring } from './uplinks.ts';

/**
 * Two nodes can own the addresses of two rules. Whatever is changed, killed or removed meanwhile: no packet of a selected pod to the
 * partner has another source than an egress address, no other pod's has one, and no address is at two nodes at a time.
 */

const layout = layoutOf({ gateways: 2, workers: 1, ip: 'dual', partner: true });
const blocks = [...admittedBlocks(layout), ...secondBlocks(layout)];
const OTHERS_PORT = 7;
const judge = selectedByPort(layout, blocks, {
  selected: [PARTNER_PORTS.echo, PARTNER_PORTS.http],
  others: [OTHERS_PORT],
});
const OWNERS = ['s1-g1', 's1-g2'];
let ground: Ground;

beforeAll(async () => {
  const { pods } = await upWithRule(layout);
  ground = { layout, pods, owners: OWNERS, partner: partnerIps(layout)[0]! };
  await beginChanges(ground);
  await settled();
}, 400_000);
afterAll(down, 60_000);

const SETTLED_MS = 60_000;
const settled = async (): Promise<void> => {
  await timeUntil('the rule is ready', () => isRuleReady(layout), SETTLED_MS);
};

interface Observed {
  readonly carried: Carried;
  readonly doubles: readonly string[];
  readonly lost: string;
}

const PER_SECOND = 20;

/** Every pod talks to the partner, with every family, while something happens. */
const duringTraffic = async (act: () => Promise<void>): Promise<Observed> => {
  const pods = await probePods(layout);
  const flows = await Promise.all(
    pods.flatMap((pod) => {
      const port = ground.pods.some(({ name }) => name === pod.name) ? PARTNER_PORTS.echo : OTHERS_PORT;
      return partnerIps(layout).map(async (ip) => ({ port, flow: await startFlow(pod, { ip, port }, PER_SECOND) }));
    }),
  );
  let carried: Carried | undefined;
  const holders = await holdersDuring(layout, blocks, async () => {
    carried = await uplinksDuring(layout, judge, act);
  });
  const reports = await Promise.all(flows.map(async ({ port, flow }) => ({ port, ...(await flow.end()) })));
  const own = reports.filter(({ port }) => port === PARTNER_PORTS.echo);
  const lost = `lost ${own.reduce((sum, report) => sum + report.lost, 0)} of ${own.reduce((sum, { sent }) => sum + sent, 0)}`;
  console.log(`${lost}; holders ${JSON.stringify([...holders.named])}`);
  return { carried: carried!, doubles: doubleHolders(holders), lost };
};

const expectNoHarm = ({ carried, doubles }: Observed): void => {
  expect(carried.improper).toEqual([]);
  expect(doubles).toEqual([]);
  expect([...carried.proper.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(100);
};

/** Within this traffic goes on when its cause is over. */
const HEALED_MS = 10_000;
const everybodyIsAdmitted = async (): Promise<boolean> => {
  const asked = await Promise.all(
    ground.pods.flatMap((pod) => partnerIps(layout).map((ip) => seenByPartnerAs(pod, ip))),
  );
  return asked.every((seen) => seen !== undefined);
};

const CHANGES = 50;

test('fifty random changes of rules, labels, pools and owners', { timeout: 600_000 }, async () => {
  const seed = Number(process.env['UNBOUNDED_SEED'] ?? Date.now() % 1_000_000);
  const random = randomNumbers(seed);
  const said: string[] = [];
  const observed = await duringTraffic(async () => {
    for (let count = 0; count < CHANGES; count++) {
      said.push(`${new Date().toISOString()} ${await changeSomething(ground, random)}`);
      await delay(200 + random(2000));
      await Promise.all(
        [0, 1].map(() => seenByPartnerAs(ground.pods[random(ground.pods.length)]!, partnerIps(layout)[random(2)]!)),
      );
    }
  });
  console.log(`seed ${seed}\n${said.join('\n')}`);
  expectNoHarm(observed);
  await endChanges(ground);
  await settled();
  await timeUntil('every pod is admitted', everybodyIsAdmitted, HEALED_MS);
  expect(await verify(layout)).toBe(true);
});

test('every process of ours is killed, one after the other, and the API server', { timeout: 600_000 }, async () => {
  const observed = await duringTraffic(() => restartEverything(layout));
  expectNoHarm(observed);
  await timeUntil('every pod is admitted', everybodyIsAdmitted, HEALED_MS);
});

const DAMAGES = [
  'nft flush ruleset',
  `ip rule flush protocol ${EGRESS_ROUTE_PROTOCOL}; ip -6 rule flush protocol ${EGRESS_ROUTE_PROTOCOL}`,
  `ip route flush table all protocol ${EGRESS_ROUTE_PROTOCOL}; ip -6 route flush table all protocol ${EGRESS_ROUTE_PROTOCOL}`,
  `ip link delete ${DEVICES.egress}`,
];
test.each(
  DAMAGES.flatMap(
    (damage) =>
      [
        [damage, 'the owner', OWNERS],
        [damage, 'the pod', ['s2-w1']],
      ] as const,
  ),
)('%s at the node of %s: it is back within ten seconds', { timeout: 120_000 }, async (damage, _, nodes) => {
  const observed = await duringTraffic(async () => {
    for (const node of nodes) onNode(node, 'sh', '-c', damage);
    const ms = await timeUntil('every pod is admitted', everybodyIsAdmitted, HEALED_MS);
    console.log(`${damage}: admitted again after ${ms} ms`);
  });
  expectNoHarm(observed);
});
