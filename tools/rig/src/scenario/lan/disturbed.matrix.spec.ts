import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROBES } from '../../checks/test-pod.ts';
import { kubectl } from '../../kubernetes/control-plane.ts';
import { layoutOf, namespaceOf } from '../../layout/layout.ts';
import { inNamespace, runAsync } from '../../machine/command.ts';
import { inNode } from '../../node/node.ts';
import { down } from '../../substrate/down.ts';
import { probePods } from '../../substrate/probes.ts';
import { up } from '../../substrate/up.ts';
import { withoutApiServer } from '../restarts.ts';
import { inPodNetwork, killAgent, startFlow, timeUntil, tryInPod } from '../scenario.ts';
import { answersTo, endpointsOf, onLan, problemsOn } from './place.ts';

/** A LAN over two sites while what makes it is disturbed. */

const layout = layoutOf({ workers: 1, lan: true });
const AWAY_MS = 60_000;

beforeAll(async () => {
  await down();
  await up(layout);
}, 300_000);
afterAll(down, 60_000);

test(
  'no frame is lost while every agent is killed and the API server is away for a minute',
  { timeout: 300_000 },
  async () => {
    const [from, to] = [await onLan(layout, 's1-w1'), await onLan(layout, 's2-w1')];
    const flows = await Promise.all([to.ipv4, to.ipv6].map((ip) => startFlow(from.pod, { ip })));
    for (const { name } of layout.nodes) await killAgent(layout, name, 'node-dataplane');
    await delay(5000);
    await withoutApiServer(layout, async () => {
      await killAgent(layout, 's1-w1', 'node-dataplane');
      await delay(AWAY_MS);
    });
    for (const { sent, lost } of await Promise.all(flows.map((flow) => flow.end()))) {
      expect(sent).toBeGreaterThan(60_000);
      expect(lost).toBe(0);
    }
    expect(await problemsOn(layout)).toEqual([]);
  },
);

test(
  'a pod that goes, also by force, leaves no endpoint, entry or device; its successor joins',
  { timeout: 180_000 },
  async () => {
    const { pod } = await onLan(layout, 's1-w1');
    const ports = (): Promise<string> =>
      runAsync([...inNamespace(namespaceOf('s1-w1')), 'sh', '-c', 'ls /sys/class/net | grep -c ^l2p || true']);
    const before = await ports();
    await kubectl(layout, ['delete', 'pod', pod.name, '--force', '--grace-period=0']);
    const hasSuccessor = async (): Promise<boolean> => {
      const names = (await probePods(layout)).map(({ name }) => name);
      return names.length === PROBES.length * layout.nodes.length && !names.includes(pod.name);
    };
    await timeUntil('another pod is in its place', hasSuccessor, 60_000);
    const endpoints = async (): Promise<readonly string[]> =>
      (await endpointsOf(layout)).map(({ spec }) => spec.pod).sort();
    const names = (await probePods(layout)).map(({ name }) => name).sort();
    await timeUntil('endpoints are those of pods', async () => isDeepStrictEqual(await endpoints(), names), 60_000);
    const entries = await kubectl(layout, ['get', 'fdbentries,neighbors', '-o', 'name']);
    expect(entries.trim().split('\n')).toHaveLength(3 * (await endpointsOf(layout)).length);
    await timeUntil('the node has as many ports', async () => (await ports()) === before, 10_000);
    expect(await problemsOn(layout)).toEqual([]);
  },
);

test('a service bound to a multicast group is found by pods of the other site', { timeout: 60_000 }, async () => {
  const [from, to] = [await onLan(layout, 's1-w1'), await onLan(layout, 's2-w1')];
  const listen = `python3 - <<'END'
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(('239.1.2.3', 5000))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton('239.1.2.3') + socket.inet_aton('${to.ipv4}'))
s.settimeout(10)
print(s.recvfrom(100)[1][0])
END`;
  const send = `python3 - <<'END'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton('${from.ipv4}'))
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
s.sendto(b'x', ('239.1.2.3', 5000))
END`;
  const heard = runAsync([...inPodNetwork(to.pod), 'sh', '-c', listen]);
  let isHeard = false;
  void heard.finally(() => (isHeard = true)).catch(() => undefined);
  // Whoever begins to listen does not say when; it gives up after ten seconds.
  for (; !isHeard; await delay(250)) await runAsync([...inPodNetwork(from.pod), 'sh', '-c', send]);
  expect((await heard).trim()).toBe(from.ipv4);
});

const NAMESPACE = 'multus-test';

test(
  'a second interface by a CNI configuration, as Multus calls it: ADD, CHECK, GC of others, DEL',
  { timeout: 60_000 },
  async () => {
    const [{ pod }, far] = [await onLan(layout, 's1-w1'), await onLan(layout, 's2-w1')];
    const uid = await kubectl(layout, ['get', 'pod', pod.name, '-o', 'jsonpath={.metadata.uid}']);
    const config = { cniVersion: '1.0.0', name: 'multus-lan', type: 'unbounded-cni', network: 'lan' };
    const mac = '02:00:00:00:77:07';
    const taken = new Set((await endpointsOf(layout)).flatMap(({ spec }) => spec.addresses));
    const free = Array.from({ length: 100 }, (_, at) => `192.168.77.${250 - at}`).find(
      (address) => !taken.has(address),
    )!;
    // Of its own: the pod has an interface on this LAN already, by which its answers would leave.
    await runAsync([...inNode(pod.node), 'ip', 'netns', 'add', NAMESPACE]);
    const call = (command: string, more: object = {}): Promise<string> =>
      runAsync(
        [
          ...inNode(pod.node),
          'env',
          ...[
            `CNI_COMMAND=${command}`,
            'CNI_CONTAINERID=multus-test',
            `CNI_NETNS=/run/netns/${NAMESPACE}`,
            'CNI_IFNAME=lan0',
          ],
          `CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod.name};K8S_POD_UID=${uid}`,
          '/opt/cni/bin/unbounded-cni',
        ],
        { input: JSON.stringify({ ...config, ...more }) },
      );
    const runtimeConfig = { mac, ips: [`${free}/24`] };
    expect(JSON.parse(await call('ADD', { runtimeConfig }))).toMatchObject({
      interfaces: [{ name: 'lan0', mac }],
      ips: [{ address: `${free}/24`, interface: 0 }],
    });
    await answersTo(far.pod, free);
    expect(await call('CHECK')).toBe('');
    // Another configuration's, and one that keeps it.
    for (const gc of [
      { name: 'multus-other' },
      { 'cni.dev/valid-attachments': [{ containerID: 'multus-test', ifname: 'lan0' }] },
    ])
      expect(await call('GC', { 'cni.dev/valid-attachments': [], ...gc })).toBe('');
    expect(tryInPod(far.pod, 'ping', '-c3', '-W1', free)).toBeDefined();
    await expect(call('ADD', { network: 'none' })).rejects.toThrow('there is no Network');
    expect(await call('DEL')).toBe('');
    expect(await call('DEL')).toBe('');
    expect((await endpointsOf(layout)).some(({ spec }) => spec.interface === 'lan0')).toBe(false);
    expect(await problemsOn(layout)).toEqual([]);
  },
);
