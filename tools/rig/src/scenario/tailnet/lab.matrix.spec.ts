import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { tailnetAnnotations } from '@unbounded/crds';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentReady, tailnetReady } from '../../apps/agent-state.ts';
import type { Check } from '../../checks/checks.ts';
import type { Pod } from '../../checks/test-pod.ts';
import { tailnet } from '../../features/tailnet/tailnet.ts';
import { askControl, cutControlServer, removeAtServer } from '../../features/tailnet/control-server.ts';
import { asLaptopUser, LAPTOP, laptopAddresses } from '../../features/tailnet/laptop.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf, namespaceOf } from '../../layout/layout.ts';
import { inNamespace } from '../../machine/command.ts';
import { onNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { inPod as probeInPod, probePods } from '../../substrate/probes.ts';
import { up } from '../../substrate/up.ts';
import { dropsAt, dropsSince, placesOf } from '../drops.ts';
import { killLeaders, withoutApiServer } from '../restarts.ts';
import { captureInPod, inPodNetwork, killAgent, podOn, startFlow, timeUntil, tryInPod } from '../scenario.ts';
import { addressOf, leftOnNode, namesAtServer, processOf, recordOf, recordsOf } from './lab-devices.ts';
import { lookForSecrets } from './secrets-look.ts';

/** Pods that are devices of a tailnet, in a lab with Kubernetes: what reaches what, what may die, and what is left of a pod that goes. */

const layout = layoutOf({ workers: 1, tailnet: true });
const OUTAGE_MS = 60_000;
const READY_MS = 30_000;
const TEST = { timeout: 180_000 };
const PCAP_HEADER_BYTES = 24;
/** Of test pods, and of the laptop. */
const [ECHO_PORT, HTTP_PORT] = [9000, 8080];
/** Of each flow: a datagram, and its answer. */
const PER_SECOND = 1000;
/** WireGuard tries a handshake again after 5 s (RekeyTimeout). */
const HANDSHAKE_AGAIN_MS = 4500;

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

/** Its device is another one. */
const loggedInAgain = (pod: Pod, former: string): Promise<number> =>
  timeUntil(
    'it is registered anew',
    async () => {
      const { deviceID, state } = (await recordOf(layout, pod))?.status ?? {};
      return deviceID !== undefined && deviceID !== former && state === 'Running';
    },
    90_000,
  );

/** By the device itself, as an administrator on the node can have it. */
const logOut = async (pod: Pod): Promise<void> => {
  const { podUID } = (await recordOf(layout, pod))!.spec;
  const socket = `/var/lib/tailscale-cni/pods/${podUID}/tailscaled.sock`;
  const argv = ['--unix-socket', socket, '-H', 'Host: local-tailscaled.sock', '-X', 'POST'];
  onNode(pod.node, 'curl', '-sf', ...argv, 'http://local-tailscaled.sock/localapi/v0/logout');
};

test('the laptop and pods of both sites reach each other', TEST, async () => {
  const pods = await probePods(layout);
  const inPod = (pod: Pod, args: readonly string[], input?: string) => probeInPod(layout, pod, args, input);
  const ground = {
    ...{ layout, pods, mtu: 0, nodePort: 0, nodesAnswerUdp: true, streamMebibytes: 64 },
    inPod,
    egressSlices: async () => [],
  };
  const checks: readonly Check[] = await tailnet.checks(ground);
  expect(checks.length).toBeGreaterThan(100);
  expect(checks.filter(({ ok }) => !ok)).toEqual([]);
});

/** What the runtime passed to the plugins for the pods of a node, as libcni caches it. */
const passedOn = (
  node: string,
): { readonly K8S_POD_NAME?: string; readonly annotations?: Record<string, string> }[] => {
  const kept = onNode(node, 'sh', '-c', 'for file in /var/lib/cni/results/unbounded-*; do cat $file; echo; done');
  return kept.split('\n').flatMap((line) => {
    if (line === '') return [];
    const { cniArgs, capabilityArgs } = JSON.parse(line) as {
      readonly cniArgs: readonly (readonly [string, string])[];
      readonly capabilityArgs?: { readonly 'io.kubernetes.cri.pod-annotations'?: Record<string, string> };
    };
    const annotations = capabilityArgs?.['io.kubernetes.cri.pod-annotations'];
    return [{ ...Object.fromEntries(cniArgs), ...(annotations && { annotations }) }];
  });
};

test('the runtime passes the annotations of each pod to the agent, so that no request to the API server is needed', async () => {
  const pod = await podOn(layout, 's1-w1');
  const passed = passedOn(pod.node);
  expect(passed.filter(({ annotations }) => !annotations)).toEqual([]);
  const { annotations } = passed.find(({ K8S_POD_NAME }) => K8S_POD_NAME === pod.name)!;
  expect(annotations).toMatchObject({ [tailnetAnnotations.join]: 'true' });
});

/** Who gets an answer of TCP: the laptop from a pod, and they from it and each other, at a port that is allowed and one that is not. */
const answers = async (pod: Pod, other: Pod) => {
  const [address, laptop] = [await addressOf(layout, pod), (await laptopAddresses())[0]!];
  const connect = (ip: string, port: number): string[] => ['curl', '-sm2', '-o/dev/null', `telnet://${ip}:${port}`];
  const isOpen = (prefix: readonly string[], ip: string, port: number): boolean => {
    // It waits for more when it is connected (28), and for the connection when it is not.
    const { stderr } = spawnSync(prefix[0]!, [...prefix.slice(1), ...connect(ip, port), '-v'], {
      encoding: 'utf8',
      input: '',
    });
    return stderr.includes('Connected to');
  };
  return {
    fromLaptop: [ECHO_PORT, HTTP_PORT].map((port) => isOpen(asLaptopUser(), address, port)),
    toLaptop: isOpen(inPodNetwork(pod), laptop, ECHO_PORT),
    toEachOther: isOpen(inPodNetwork(other), address, ECHO_PORT),
  };
};

test('what the ACLs of the tailnet allow by tags passes, and nothing else, both ways', TEST, async () => {
  const [pod, other] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
  const setRules = (rules: object): string =>
    askControl(layout, '/debug/acl', '-X', 'POST', '-d', JSON.stringify(rules));
  type Answers = Awaited<ReturnType<typeof answers>>;
  /** Devices get the rules one after the other. */
  const become = (expected: Answers): Promise<void> =>
    expect.poll(() => answers(pod, other), { timeout: 30_000 }).toEqual(expected);
  await become({ fromLaptop: [true, true], toLaptop: true, toEachOther: true });
  setRules({ rules: [{ from: ['tag:laptop'], to: ['tag:k8s-pod'], ports: String(ECHO_PORT) }] });
  await become({ fromLaptop: [true, false], toLaptop: false, toEachOther: false });
  setRules({ rules: [{ from: ['tag:k8s-pod'], to: ['tag:laptop', 'tag:k8s-pod'], ports: '*' }] });
  await become({ fromLaptop: [false, false], toLaptop: true, toEachOther: true });
  setRules({});
  await become({ fromLaptop: [true, true], toLaptop: true, toEachOther: true });
});

test(
  'nothing is lost while our programs die, and API server and control server are away',
  { timeout: 500_000 },
  async () => {
    const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
    const ends = [
      ...[from, to].map((pod) => [pod.name, inPodNetwork(pod)] as const),
      ['laptop', asLaptopUser()] as const,
    ];
    const places = [
      ...placesOf(layout),
      ...ends,
      ['WAN host of the laptop', inNamespace(namespaceOf(LAPTOP))] as const,
    ];
    const before = dropsAt(places);
    const flows = [
      await startFlow(from, { ip: await addressOf(layout, to) }, PER_SECOND),
      await startFlow(to, { ip: (await laptopAddresses())[0]! }, PER_SECOND),
    ];
    for (const { name } of layout.nodes) {
      await killAgent(layout, name, 'tailnet');
      await killAgent(layout, name, 'node-dataplane');
      // One after the other: what is tested is that they may die, not what a machine can start at once.
      await timeUntil(`the agents of ${name} are ready`, () => agentReady(name) && tailnetReady(name), READY_MS);
    }
    await killLeaders(layout);
    await withoutApiServer(layout, async () => {
      cutControlServer(true);
      await delay(OUTAGE_MS);
      cutControlServer(false);
    });
    const reports = [await flows[0]!.end(), await flows[1]!.end()];
    for (const { lost, sent, losses } of reports) console.log(`${lost} of ${sent} lost, ${JSON.stringify(losses)}`);
    const why = `dropped meanwhile: ${dropsSince(before, dropsAt(places))}`;
    expect(
      reports.map(({ lost }) => lost),
      why,
    ).toEqual([0, 0]);
  },
);

test('a device whose process dies is back with its interface and its addresses', { timeout: 120_000 }, async () => {
  const pod = await podOn(layout, 's1-w1');
  const linkOf = () => tryInPod(pod, 'ip', '-o', 'addr', 'show', 'dev', 'ts0', 'scope', 'global');
  const [link, pid, address] = [linkOf(), await processOf(layout, pod), await addressOf(layout, pod)];
  const flow = await startFlow(await podOn(layout, 's2-w1'), { ip: address });
  onNode(pod.node, 'kill', '-9', String(pid));
  await timeUntil('another process runs', async () => ![undefined, pid].includes(await processOf(layout, pod)), 10_000);
  await delay(4000);
  const { largestGapMillis, received } = await flow.end();
  console.log(`${largestGapMillis} ms without a packet`);
  expect(received).toBeGreaterThan(0);
  expect(largestGapMillis).toBeLessThan(HANDSHAKE_AGAIN_MS);
  expect([linkOf(), await addressOf(layout, pod)]).toEqual([link, address]);
});

test('the cluster’s packets go as they went, whatever the control server sends', TEST, async () => {
  const [from, to] = [await podOn(layout, 's1-w1'), await podOn(layout, 's2-w1')];
  const file = `/tmp/tailnet-${process.pid}.pcap`;
  const lies = {
    routes: ['100.65.0.0/16', '100.66.0.0/16', '10.96.0.0/16', '10.0.0.0/8'],
    oneCgnat: true,
    peerAddress: `${to.ip}/32`,
  };
  const end = await captureInPod(from, file, 'ts0');
  askControl(layout, '/debug/map', '-X', 'POST', '-d', JSON.stringify(lies));
  const flow = await startFlow(from, to);
  await delay(5000);
  const { lost, received } = await flow.end();
  askControl(layout, '/debug/map', '-X', 'POST', '-d', '{}');
  await end();
  expect([lost, received > 0]).toEqual([0, true]);
  const captured = readFileSync(file).toString('latin1');
  const address = Buffer.from(to.ip.split('.').map(Number)).toString('latin1');
  expect(captured.includes(address)).toBe(false);
});

/** Those of the lab's tailnet; its pods have others of 100.64.0.0/10. */
const TAILNET = ['net', '100.64.0.0/16', 'or', 'net', 'fd7a:115c:a1e0::/48'];

test('through kill, logout and another login no packet for the tailnet leaves by eth0', TEST, async () => {
  const pod = await podOn(layout, 's2-w1');
  const file = `/tmp/tailnet-${process.pid}-eth0.pcap`;
  const end = await captureInPod(pod, file, 'eth0', TAILNET);
  const flow = await startFlow(pod, { ip: (await laptopAddresses())[0]! }, PER_SECOND);
  onNode(pod.node, 'kill', '-9', String(await processOf(layout, pod)));
  await delay(3000);
  const { metadata, status: before } = (await recordOf(layout, pod))!;
  // By a watch that has begun: it has the next key soon.
  const isLoggedOut = kubectl(layout, [
    ...['wait', `tailnetdevice/${metadata.name}`, `--namespace=${metadata.namespace}`],
    ...['--for=jsonpath={.status.state}=NeedsLogin', `--timeout=${READY_MS / 1000}s`],
  ]);
  await delay(1000);
  await logOut(pod);
  await isLoggedOut;
  const isRegistered = async (): Promise<boolean> => {
    const { state, conditions } = (await recordOf(layout, pod))!.status!;
    return (
      state === 'Running' && conditions?.some(({ type, status }) => type === 'Registered' && status === 'True') === true
    );
  };
  await timeUntil('it is registered again', isRegistered, 60_000);
  const { deviceID, addresses, sealedKey } = (await recordOf(layout, pod))!.status!;
  expect({ deviceID, addresses, sealedKey }).toEqual({
    deviceID: before!.deviceID,
    addresses: before!.addresses,
    sealedKey: undefined,
  });
  await delay(3000);
  const { received, lost, losses } = await flow.end();
  await end();
  console.log(`${lost} lost, ${JSON.stringify(losses)}`);
  expect(received).toBeGreaterThan(0);
  expect(readFileSync(file).length).toBe(PCAP_HEADER_BYTES);
});

test('a device that is deleted at the control server logs in again', { timeout: 120_000 }, async () => {
  const pod = await podOn(layout, 's2-w1');
  const former = (await recordOf(layout, pod))!.status!.deviceID!;
  removeAtServer(layout, former);
  await loggedInAgain(pod, former);
  const laptop = (await laptopAddresses())[0]!;
  await timeUntil('it reaches the laptop', () => tryInPod(pod, 'ping', '-c1', '-W1', laptop) !== undefined, 20_000);
});

test('a pod that goes leaves no device, no process and no file', { timeout: 120_000 }, async () => {
  const pod = await podOn(layout, 's2-w1');
  const { spec } = (await recordOf(layout, pod))!;
  expect(namesAtServer(layout)).toContain(spec.hostName);
  await kubectl(layout, ['delete', 'pod', pod.name, '--wait=true']);
  const isListed = async (): Promise<boolean> =>
    (await recordsOf(layout)).some(({ spec: other }) => other.podUID === spec.podUID);
  await timeUntil(
    'nothing is left',
    async () =>
      !namesAtServer(layout).includes(spec.hostName) &&
      !leftOnNode(pod.node).includes(spec.podUID) &&
      !(await isListed()),
    15_000,
  );
  await timeUntil(
    'the next pod is a device',
    async () =>
      (await recordsOf(layout)).filter(({ status }) => status?.state === 'Running').length === 2 * layout.nodes.length,
    60_000,
  );
});

test(
  'no credential, auth key or private key is in a log, an argument, an environment, an object, a metric or a file of others',
  TEST,
  async () => {
    const { keys, places, found } = await lookForSecrets(layout);
    expect(keys).toBeGreaterThanOrEqual(2 * layout.nodes.length);
    expect(places).toBeGreaterThan(50);
    expect(found).toEqual([]);
  },
);
