import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import {
  type Brought,
  brought,
  configKey,
  counter,
  echoAddresses,
  encapConfig,
  endpointV4,
  endpointV6,
  forwarderKey,
  innerMac,
  localAddresses,
  lpmKeyV4,
  lpmKeyV6,
  statsKey,
} from '@unbounded/bpf-maps';
import { type Attachment, attachProgram, type BpfObject, loadObject } from '@unbounded/libbpf-ts';
import { createNetns, createRouteSocket, createTun, type Netns, openTun, type RouteSocket } from '@unbounded/netlink';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';

import { frame, withChecksums } from './packets.ts';

/** Two nodes and a VXLAN between them, as the agent sets them up: anchor, tunnel device, programs, maps. */
interface Node extends Disposable {
  readonly ns: Netns;
  readonly net: RouteSocket;
  readonly object: BpfObject;
  readonly underlay: string;
  readonly tunnel: number;
  /** A tcx attachment lives as long as somebody holds it. */
  readonly attachments: readonly Attachment[];
}

const OWN = {
  a: { underlay: '192.0.2.1', overlay: ['100.64.1.1', 'fd00:1::1'] },
  b: { underlay: '192.0.2.2', overlay: ['100.64.2.1', 'fd00:2::1'] },
} as const;

let nodes: Node[];
let a: Node;
let b: Node;

beforeAll(() => void execFileSync(new URL('build.sh', import.meta.url).pathname, { stdio: 'inherit' }));

const keep = async (own: (typeof OWN)['a' | 'b'], ns: Netns, wire: string): Promise<Node> => {
  const net = createRouteSocket({ netnsFd: ns.fd });
  const { underlay, overlay } = own;
  const lower = await net.links.get(wire);
  if (!lower) throw new Error(`no link ${wire}`);
  await net.links.modify('lo', { up: true });
  await net.links.modify(wire, { up: true });
  await net.addresses.replace({ link: lower.index, address: `${underlay}/24` });
  const tunnel = await net.links.create({
    name: 'vxlan0',
    kind: { kind: 'vxlan', external: true, port: 4789, learning: false, udp6ZeroChecksumRx: true },
    mac: innerMac(underlay),
    mtu: 1450,
    arp: false,
    up: true,
  });
  const anchor = await net.links.create({ name: 'unbounded0', kind: { kind: 'ifb' }, mtu: 1450, arp: false, up: true });
  for (const [index, address] of overlay.entries()) {
    await net.addresses.replace({
      link: tunnel.index,
      address: `${address}/${index ? 128 : 32}`,
      flags: index ? 2 : 0,
    });
  }
  await net.routes.replace({ dst: '100.64.0.0/16', link: anchor.index, prefSrc: overlay[0] });
  await net.routes.replace({ dst: 'fd00::/16', link: anchor.index, prefSrc: overlay[1] });
  const object = loadObject(readFileSync(new URL('build/unbounded_encap.bpf.o', import.meta.url)), { name: 'encap' });
  const attachments = [
    attachProgram(object.program('unbounded_encap'), { ifindex: anchor.index, direction: 'egress', netnsFd: ns.fd }),
    attachProgram(object.program('unbounded_tunnel_ingress'), {
      ifindex: tunnel.index,
      direction: 'ingress',
      netnsFd: ns.fd,
    }),
  ];
  const close = (): void => {
    object.close();
    net.close();
    ns.close();
  };
  return { ns, net, object, underlay, tunnel: tunnel.index, attachments, [Symbol.dispose]: close };
};

const know = (node: Node, prefix: string, remote: string): void => {
  const hop = { remote, vni: 1, ifindex: node.tunnel, protocol: 'vxlan', setKey: true, healthy: true } as const;
  if (prefix.includes(':')) node.object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6).set(prefix, hop);
  else node.object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4).set(prefix, hop);
};

const counted = (
  node: Node,
  stat: 'received' | 'drop_forged_source' | 'drop_unknown_source' | 'redirected_vxlan',
): number =>
  Number(
    node.object
      .perCpuMap('unbounded_stats', statsKey, counter)
      .get(stat)
      ?.reduce((sum, value) => sum + value, 0n) ?? 0n,
  );

/** Echo requests that the node's IP took. */
const nstat = (node: Node): number => {
  const text = execFileSync('nsenter', [`--net=${node.ns.path}`, 'cat', '/proc/net/snmp'], { encoding: 'utf8' });
  const [names, values] = text
    .split('\n')
    .filter((line) => line.startsWith('Icmp:'))
    .map((line) => line.split(' '));
  return Number(values![names!.indexOf('InEchos')]);
};

const runPing = (from: Node, ...argv: string[]): boolean =>
  spawnSync('nsenter', [`--net=${from.ns.path}`, 'ping', '-c1', ...argv]).status === 0;
const ping = (from: Node, to: string, ...more: string[]): boolean => runPing(from, '-W1', ...more, to);
/** It ends with the answer, however late this machine is. */
const reaches = (from: Node, to: string, ...more: string[]): boolean => runPing(from, '-W30', ...more, to);

beforeEach(async () => {
  nodes = [];
  const [nsA, nsB] = [createNetns(), createNetns()];
  await using net = createRouteSocket({ netnsFd: nsA.fd });
  await net.links.create({ name: 'wire0', kind: { kind: 'veth', peer: { name: 'wire1', netnsFd: nsB.fd } } });
  a = await keep(OWN.a, nsA, 'wire0');
  nodes.push(a);
  b = await keep(OWN.b, nsB, 'wire1');
  nodes.push(b);
  for (const [index, address] of OWN.b.overlay.entries()) know(a, `${address}/${index ? 128 : 32}`, OWN.b.underlay);
  for (const [index, address] of OWN.a.overlay.entries()) know(b, `${address}/${index ? 128 : 32}`, OWN.a.underlay);
});
afterEach(() => nodes.forEach((node) => node[Symbol.dispose]()));

test('IPv4 and IPv6 packets pass the tunnel both ways', () => {
  expect(reaches(a, OWN.b.overlay[0])).toBe(true);
  expect(reaches(b, OWN.a.overlay[1], '-6')).toBe(true);
  expect(counted(a, 'redirected_vxlan')).toBeGreaterThanOrEqual(2);
  expect(counted(b, 'received')).toBeGreaterThanOrEqual(2);
});

test('a MAC that is not the device’s own does not matter: the receiver takes what the tunnel brought', async () => {
  await b.net.links.modify('vxlan0', { mac: '02:00:00:00:00:77' });
  expect(reaches(a, OWN.b.overlay[0])).toBe(true);
});

test('a receiver without a program takes packets that carry its own MAC, though its tunnel is at another address', async () => {
  const [, atTunnel] = b.attachments;
  if (atTunnel!.via === 'tcx') atTunnel!.link.detach();
  else await b.net.trafficControl.deleteClsact(b.tunnel);
  await b.net.addresses.replace({ link: (await b.net.links.get('wire1'))!.index, address: '192.0.2.77/24' });
  const hop = {
    remote: '192.0.2.77',
    vni: 1,
    ifindex: a.tunnel,
    protocol: 'vxlan',
    setKey: true,
    healthy: true,
  } as const;
  const entries = a.object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4);
  const received = async (): Promise<number> => {
    const before = nstat(b);
    ping(a, OWN.b.overlay[0]);
    return nstat(b) - before;
  };
  entries.set(`${OWN.b.overlay[0]}/32`, hop);
  expect(await received()).toBe(0);
  entries.set(`${OWN.b.overlay[0]}/32`, { ...hop, mac: innerMac(OWN.b.underlay) });
  expect(await received()).toBe(1);
  expect(counted(a, 'redirected_vxlan')).toBe(2);
});

test('an inner source of another node is dropped as forged, one of nobody as unknown', async () => {
  await a.net.addresses.replace({ link: a.tunnel, address: '100.64.9.9/32' });
  expect(ping(a, OWN.b.overlay[0], '-I', '100.64.9.9')).toBe(false);
  expect(counted(b, 'drop_unknown_source')).toBe(1);
  know(b, '100.64.9.0/24', '192.0.2.99');
  expect(ping(a, OWN.b.overlay[0], '-I', '100.64.9.9')).toBe(false);
  expect(counted(b, 'drop_forged_source')).toBe(1);
  know(b, '100.64.9.0/24', OWN.a.underlay);
  expect(reaches(a, OWN.b.overlay[0], '-I', '100.64.9.9')).toBe(true);
});

test('a forwarder brings what is of others, but nothing of nobody', async () => {
  await a.net.addresses.replace({ link: a.tunnel, address: '100.64.9.9/32' });
  using forwarders = b.object.map('unbounded_forwarders', forwarderKey, brought);
  forwarders.set(OWN.a.underlay, { others: true });
  expect(ping(a, OWN.b.overlay[0], '-I', '100.64.9.9')).toBe(false);
  expect(counted(b, 'drop_unknown_source')).toBe(1);
  // The answer goes where the address lives: the request is what arrives here.
  know(b, '100.64.9.0/24', '192.0.2.99');
  const before = counted(b, 'received');
  ping(a, OWN.b.overlay[0], '-I', '100.64.9.9');
  expect(counted(b, 'received')).toBe(before + 1);
  expect(counted(b, 'drop_forged_source')).toBe(0);
  forwarders.delete(OWN.a.underlay);
  ping(a, OWN.b.overlay[0], '-I', '100.64.9.9');
  expect(counted(b, 'drop_forged_source')).toBe(1);
});

describe('echoes of a node', () => {
  const ECHO = [
    ['IPv4', '100.64.1.0', '100.64.2.0'],
    ['IPv6', 'fd00:1::ff', 'fd00:2::ff'],
  ] as const;
  const records = (node: Node, family: string) =>
    family === 'IPv4'
      ? node.object.map('unbounded_endpoints_v4', lpmKeyV4, endpointV4)
      : node.object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6);
  const bits = (address: string): number => (address.includes(':') ? 128 : 32);

  const mayBring = (what: Brought): void =>
    a.object.map('unbounded_forwarders', forwarderKey, brought).set(OWN.b.underlay, what);

  beforeEach(async () => {
    createTun({ name: 'echo0', netnsFd: a.ns.fd });
    await a.net.links.modify('echo0', { up: true });
    const { index: link } = (await a.net.links.get('echo0'))!;
    for (const node of [a, b])
      execFileSync('nsenter', [
        `--net=${node.ns.path}`,
        'sysctl',
        '-qw',
        'net.ipv4.ip_forward=1',
        'net.ipv6.conf.all.forwarding=1',
        'net.ipv4.conf.all.rp_filter=0',
        'net.ipv4.conf.vxlan0.rp_filter=0',
      ]);
    for (const [family, own, far] of ECHO) {
      await a.net.routes.replace({ dst: `${own}/${bits(own)}`, link });
      const hop = {
        remote: OWN.b.underlay,
        vni: 1,
        ifindex: a.tunnel,
        protocol: 'vxlan',
        setKey: true,
        healthy: true,
      } as const;
      records(a, family).set(`${far}/${bits(far)}`, { ...hop, echo: true });
      know(b, `${own}/${bits(own)}`, OWN.a.underlay);
    }
    a.object.map('unbounded_echo', configKey, echoAddresses).set(0, { ipv4: ECHO[0][1], ipv6: ECHO[1][1] });
    mayBring({ echoes: true });
  });

  test.each(ECHO)('%s: come back by the other node', async (_, own, far) => {
    const returned: Uint8Array[] = [];
    using tun = openTun({ name: 'echo0', netnsFd: a.ns.fd, onPacket: (packet) => void returned.push(packet) });
    const inside = (destination: string): Uint8Array => withChecksums(frame({ source: own, destination })).subarray(14);
    const isEcho = (packet: Uint8Array): boolean => packet.length === inside(own).length && packet.at(-1) === 0;
    for (const end = performance.now() + 5000; performance.now() < end && !returned.some(isEcho); await delay(50))
      expect(tun.inject(inside(far))).toBe(0);
    const hops = own.includes(':') ? [7] : [8, 10, 11]; // and the checksum over them
    const beyond = (packet: Uint8Array): number[] => [...packet].filter((_byte, at) => !hops.includes(at));
    expect(returned.filter(isEcho).map(beyond)[0]).toEqual(beyond(inside(own)));
    expect(counted(a, 'drop_unknown_source')).toBe(0);
  });

  test.each(ECHO)('%s: from a node that is no gateway of this one are nobody’s', async (_, own, far) => {
    mayBring({ others: true });
    const returned: Uint8Array[] = [];
    using tun = openTun({ name: 'echo0', netnsFd: a.ns.fd, onPacket: (packet) => void returned.push(packet) });
    const packet = withChecksums(frame({ source: own, destination: far })).subarray(14);
    for (
      const end = performance.now() + 5000;
      performance.now() < end && counted(a, 'drop_unknown_source') < 3;
      await delay(50)
    )
      tun.inject(packet);
    expect(counted(a, 'drop_unknown_source')).toBeGreaterThanOrEqual(3);
    expect(returned.filter(({ length }) => length === packet.length)).toEqual([]);
  });

  test.each(ECHO)('%s: their address as the source of anything else is nobody’s', async (_, own) => {
    await b.net.addresses.replace({ link: b.tunnel, address: `${own}/${bits(own)}`, flags: own.includes(':') ? 2 : 0 });
    const [to, before] = [OWN.a.overlay[own.includes(':') ? 1 : 0], counted(a, 'drop_unknown_source')];
    expect(ping(b, to, '-I', own)).toBe(false);
    expect(counted(a, 'drop_unknown_source')).toBeGreaterThan(before);
  });
});

test('sources are not looked at where the configuration says so', async () => {
  b.object.map('unbounded_config', configKey, encapConfig).set(0, { anySource: true });
  await a.net.addresses.replace({ link: a.tunnel, address: '100.64.9.9/32' });
  know(b, '100.64.9.0/24', OWN.a.underlay);
  expect(reaches(a, OWN.b.overlay[0], '-I', '100.64.9.9')).toBe(true);
});

test('a destination without endpoint leaves by no way at all', () => {
  expect(ping(a, '100.64.77.7')).toBe(false);
  expect(counted(a, 'redirected_vxlan')).toBe(0);
});

describe('a node whose primary address is another than that by which its peers know it', () => {
  /** The kernel chooses the first address of the device that leads there. */
  const PRIMARY = { v4: '192.0.2.99', v6: 'fd00:99::99' } as const;
  const OWN_V6 = { a: 'fd00:99::1', b: 'fd00:99::2' } as const;
  const ipIn = (node: Node, line: string): void =>
    void execFileSync('nsenter', [`--net=${node.ns.path}`, 'ip', ...line.split(' ')]);

  beforeEach(() => {
    ipIn(a, 'addr del 192.0.2.1/24 dev wire0');
    for (const address of [PRIMARY.v4, OWN.a.underlay]) ipIn(a, `addr add ${address}/24 dev wire0`);
    // The kernel prefers the IPv6 address that came last.
    for (const address of [OWN_V6.a, PRIMARY.v6]) ipIn(a, `addr add ${address}/64 dev wire0 nodad`);
    ipIn(b, `addr add ${OWN_V6.b}/64 dev wire1 nodad`);
  });

  const leadBy = (underlay: { readonly a: string; readonly b: string }, ownSource: boolean): void => {
    const hop = { vni: 1, protocol: 'vxlan', setKey: true, healthy: true, ownSource } as const;
    const records = (node: Node) => node.object.map('unbounded_endpoints_v6', lpmKeyV6, endpointV6);
    records(a).set(`${OWN.b.overlay[1]}/128`, { ...hop, remote: underlay.b, ifindex: a.tunnel });
    records(b).set(`${OWN.a.overlay[1]}/128`, { ...hop, ownSource: false, remote: underlay.a, ifindex: b.tunnel });
    a.object.map('unbounded_locals', configKey, localAddresses).set(0, { ipv4: OWN.a.underlay, ipv6: OWN_V6.a });
  };

  test.each([
    ['IPv4', { a: OWN.a.underlay, b: OWN.b.underlay }],
    ['IPv6', OWN_V6],
  ])(
    '%s: is taken for a forger where the kernel chooses the source, and for itself where the program says it',
    (_, underlay) => {
      leadBy(underlay, false);
      expect(ping(a, OWN.b.overlay[1], '-6')).toBe(false);
      expect(counted(b, 'drop_forged_source')).toBe(1);
      leadBy(underlay, true);
      expect(reaches(a, OWN.b.overlay[1], '-6')).toBe(true);
      expect(counted(b, 'drop_forged_source')).toBe(1);
    },
  );

  test('a source that is no address of the node is one that the kernel refuses: nothing is sent', () => {
    leadBy({ a: OWN.a.underlay, b: OWN.b.underlay }, true);
    a.object.map('unbounded_locals', configKey, localAddresses).set(0, { ipv4: '192.0.2.55' });
    expect(ping(a, OWN.b.overlay[1], '-6')).toBe(false);
    expect(counted(b, 'received')).toBe(0);
  });
});
