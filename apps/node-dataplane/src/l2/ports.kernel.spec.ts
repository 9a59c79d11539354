import { execFileSync } from 'node:child_process';
import {
  createEthtool,
  createNetns,
  createRouteSocket,
  type Ethtool,
  type Netns,
  type RouteSocket,
} from '@unbounded/netlink';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { L2_PORT_ALIAS, portName } from './names.ts';
import { createPort, type PortSpec, removePort } from './ports.ts';

let node: Netns;
let pod: Netns;
let net: RouteSocket;
let ethtool: Ethtool;
beforeEach(() => {
  [node, pod] = [createNetns(), createNetns()];
  net = createRouteSocket({ netnsFd: node.fd });
  ethtool = createEthtool({ netnsFd: node.fd });
});
afterEach(() => {
  ethtool[Symbol.dispose]();
  net.close();
  for (const ns of [node, pod]) ns.close();
});

const inside = (...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${pod.path}`, ...argv], { encoding: 'utf8' });
const spec = (): PortSpec => ({
  ...{ device: portName('shop/web.net1'), netns: pod.path, interface: 'net1' },
  ...{ mac: '02:00:00:00:00:07', mtuBytes: 1366 },
});

test('the pod’s end has its name, MAC and MTU, and hands on no packet that is to be segmented later, or whose checksum is', async () => {
  const port = await createPort(net, ethtool, spec());
  const shown = inside('ip', 'link', 'show', 'net1');
  expect(shown).toContain('mtu 1366');
  expect(shown).toContain('02:00:00:00:00:07');
  const features = inside('ethtool', '-k', 'net1');
  expect(features).toMatch(/^tcp-segmentation-offload: off/m);
  expect(features).toMatch(/^generic-segmentation-offload: off/m);
  expect(features).toMatch(/^tx-checksumming: off/m);
  expect(features).toMatch(/^\s*tx-checksum-ip-generic: off/m);
  const found = await net.links.get(port.index);
  expect(found).toMatchObject({ alias: L2_PORT_ALIAS, up: false, arp: false, mtu: 9000 });
});

test('what is left of a pod before under the same name goes', async () => {
  const former = await createPort(net, ethtool, spec());
  const next = createNetns();
  const port = await createPort(net, ethtool, { ...spec(), netns: next.path });
  expect(port.index).not.toBe(former.index);
  expect(inside('ip', 'link')).not.toContain('net1');
  next.close();
});

test('where the pod has an interface of that name nothing is left, and the error says so', async () => {
  inside('ip', 'link', 'add', 'net1', 'type', 'bridge');
  await expect(createPort(net, ethtool, spec())).rejects.toThrow(/File exists|EEXIST/);
  expect((await net.links.list()).map(({ name }) => name)).toEqual(['lo']);
});

test('where the pod’s namespace is gone nothing is made', async () => {
  await expect(createPort(net, ethtool, { ...spec(), netns: '/run/netns/gone' })).rejects.toThrow('ENOENT');
  expect((await net.links.list()).map(({ name }) => name)).toEqual(['lo']);
});

test('a device that is not ours is left alone', async () => {
  await net.links.create({ name: spec().device, kind: { kind: 'bridge' } });
  await removePort(net, spec().device);
  expect(await net.links.get(spec().device)).toBeDefined();
  await expect(createPort(net, ethtool, spec())).rejects.toThrow('is not ours');
});
