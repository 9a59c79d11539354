import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentReady, tailnetReady } from '../../apps/agent-state.ts';
import { stopAgent } from '../../apps/agents.ts';
import { PROBES } from '../../checks/test-pod.ts';
import { cutControlServer } from '../../features/tailnet/control-server.ts';
import { LAPTOP, laptopAddresses } from '../../features/tailnet/laptop.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf } from '../../layout/layout.ts';
import { onNode } from '../../node/node.ts';
import { startAgent } from '../../substrate/agents.ts';
import { down } from '../../substrate/down.ts';
import { up } from '../../substrate/up.ts';
import { turnOff, turnOn } from '../reboot.ts';
import { withoutApiServer } from '../restarts.ts';
import { pidOfPod, timeUntil, tryInPod } from '../scenario.ts';
import { createPods, deletePods } from './joining-pods.ts';
import { leftOnNode, namesAtServer, recordOf, recordsOf } from './lab-devices.ts';

/** A device is that of its pod, whatever ends and begins again, and of a pod that is gone nothing is left. */

const layout = layoutOf({ workers: 1, tailnet: true });
const nodes = layout.nodes.map(({ name }) => name);
const NODE = 's2-w1';
const TEST = { timeout: 400_000 };

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

interface Identity {
  readonly deviceID: string | undefined;
  readonly addresses: readonly string[] | undefined;
}

const podNow = async (name: string) => {
  const { spec, status } = JSON.parse(await kubectl(layout, ['get', 'pod', name, '-o', 'json'])) as {
    spec: { nodeName: string };
    status: { podIP?: string; containerStatuses?: { restartCount: number; ready: boolean }[] };
  };
  const [container] = status.containerStatuses ?? [];
  return { name, node: spec.nodeName, site: '', ips: [], ip: status.podIP ?? '', container };
};
const identityOf = async (name: string): Promise<Identity> => {
  const { deviceID, addresses } = (await recordOf(layout, { name }))?.status ?? {};
  return { deviceID, addresses };
};

/** By the device's interface, of whichever namespace the pod has now. */
const reachesLaptop = async (name: string): Promise<boolean> => {
  const pod = await podNow(name);
  if (!pod.container?.ready) return false;
  try {
    return tryInPod(pod, 'ping', '-c1', '-W1', (await laptopAddresses())[0]!) !== undefined;
  } catch {
    return false; // its process is just ending
  }
};
const untilUp = (name: string): Promise<number> =>
  timeUntil(`${name} reaches the laptop`, () => reachesLaptop(name), 90_000);

/** A pod that is up, what is done to it, and its identity before and after. */
const through = async (name: string, happen: () => Promise<void>): Promise<readonly [Identity, Identity]> => {
  await createPods(layout, { name, node: NODE, start: 'WaitForDevice' });
  await untilUp(name);
  // Its packets pass before its record says so.
  await timeUntil('its record has its identity', async () => (await identityOf(name)).deviceID !== undefined, 15_000);
  const before = await identityOf(name);
  await happen();
  console.log(`${name}: up after ${await untilUp(name)} ms`);
  return [before, await identityOf(name)];
};

test('the device stays when the container of its pod starts again', TEST, async () => {
  const name = 'container';
  const [before, after] = await through(name, async () => {
    const pod = await podNow(name);
    onNode(pod.node, 'kill', '-9', pidOfPod(pod));
    await timeUntil('it has started again', async () => (await podNow(name)).container?.restartCount === 1, 30_000);
  });
  expect(after).toEqual(before);
});

test('the device stays when the pod gets another sandbox', TEST, async () => {
  const name = 'sandbox';
  const [before, after] = await through(name, async () => {
    const pod = await podNow(name);
    onNode(pod.node, 'kill', '-9', pidOfPod(pod, 'pause'));
    const hasOther = async (): Promise<boolean> => ![pod.ip, ''].includes((await podNow(name)).ip);
    await timeUntil('it has another sandbox', hasOther, 60_000);
  });
  expect(after).toEqual(before);
});

test('the device stays when the node loses its power', TEST, async () => {
  const name = 'node';
  const node = layout.nodes.find((one) => one.name === NODE)!;
  const [before, after] = await through(name, async () => {
    await turnOff(node);
    await turnOn(layout, node);
    await timeUntil('its agents are ready', () => agentReady(NODE) && tailnetReady(NODE), 60_000);
  });
  expect(after).toEqual(before);
});

/** Always the same numbers: a failure can be had again. */
const createRandom = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

const AWAY_MS = 4000;
const faults: readonly ((node: string) => Promise<void>)[] = [
  async (node) => {
    await stopAgent(node, 'tailnet', 'SIGKILL');
    await delay(AWAY_MS);
    await startAgent(
      layout,
      layout.nodes.find(({ name }) => name === node)!,
      'tailnet',
      {},
    );
  },
  () => withoutApiServer(layout, () => delay(AWAY_MS)),
  async () => {
    cutControlServer(true);
    await delay(AWAY_MS);
    cutControlServer(false);
  },
];

const AT_ONCE = 10;

/** Some come and some go while something is away, and so on, until so many have come. @returns those that are left */
const comeAndGo = async (count: number): Promise<string[]> => {
  const random = createRandom(36);
  const alive: string[] = [];
  for (let first = 0; first < count; first += AT_ONCE) {
    const names = Array.from({ length: AT_ONCE }, (_, index) => `pod-${first + index}`);
    const pods = names.map((name) => ({
      ...{ name, node: nodes[random(nodes.length)]! },
      start: random(2) === 0 ? ('Immediate' as const) : ('WaitForDevice' as const),
    }));
    const gone =
      alive.length > AT_ONCE ? Array.from({ length: AT_ONCE }, () => alive.splice(random(alive.length), 1)[0]!) : [];
    await createPods(layout, ...pods);
    await deletePods(layout, gone);
    alive.push(...names);
    await delay(random(1500));
    await faults[(first / AT_ONCE) % faults.length]!(nodes[random(nodes.length)]!);
  }
  return alive;
};

const probeCount = PROBES.length * nodes.length;
/** On every node what is of pods with a record, and nothing else: files go a moment after the control server has forgotten a device. */
const onlyOfPods = async (): Promise<boolean> => {
  const records = await recordsOf(layout);
  const ofPods = nodes.map((node) =>
    records
      .filter(({ spec }) => spec.node === node)
      .map(({ spec }) => spec.podUID)
      .sort(),
  );
  return isDeepStrictEqual(nodes.map(leftOnNode), ofPods);
};
const secretsNow = (): Promise<string> => kubectl(layout, ['get', 'secrets', '-A', '-o', 'name']);

test(
  'of a hundred pods that come and go while something is away, those that are there have devices, and nobody else',
  { timeout: 900_000 },
  async () => {
    await deletePods(layout, ['container', 'sandbox', 'node']); // of the tests before
    const names = (): string[] => namesAtServer(layout).filter((name) => name !== LAPTOP);
    await timeUntil('only the test pods are left', () => names().length === probeCount, 60_000);
    await timeUntil('nothing else is on the nodes', onlyOfPods, 20_000);
    const secrets = await secretsNow();
    const alive = await comeAndGo(100);
    const areAllUp = async (): Promise<boolean> => {
      const records = await recordsOf(layout);
      return (
        records.length === probeCount + alive.length &&
        records.every(({ status }) => status?.state === 'Running') &&
        names().length === records.length
      );
    };
    const upMs = await timeUntil('devices equal pods', areAllUp, 60_000);
    expect(names()).toEqual((await recordsOf(layout)).map(({ spec }) => spec.hostName).sort());
    await deletePods(layout, alive);
    const isGone = async (): Promise<boolean> =>
      (await recordsOf(layout)).length === probeCount && names().length === probeCount;
    const goneMs = await timeUntil('all devices are gone', isGone, 60_000);
    await timeUntil('nothing is left', onlyOfPods, 20_000);
    expect(await secretsNow()).toBe(secrets);
    console.log(`devices equal pods after ${upMs} ms, ${alive.length} are gone after ${goneMs} ms`);
  },
);
