import { execFileSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { createNetns, createTun, type Netns, openTun, openUdp, type Tun } from '@unbounded/netlink';
import { until } from '@unbounded/testing';
import { datagram, hexOf } from '@unbounded/testing/packets';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createNftables, type Nftables, type TableSpec } from '../src/index.ts';

/**
 * A node rewrites where packets go as they leave it. Its two TUNs are ours: `in` is where packets come from, `out` leads to the
 * TUN of another namespace, which takes nothing with a wrong checksum (it comes without offloads).
 */

const PORT = 4000;
interface Case {
  readonly ip: 'ip' | 'ip6';
  readonly node: string;
  readonly far: string;
  /** Where packets go before they are rewritten. */
  readonly old: string;
  /** Behind `in`. */
  readonly sender: string;
}
const FAMILIES: readonly Case[] = [
  { ip: 'ip', node: '192.0.2.1', far: '192.0.2.9', old: '198.51.100.7', sender: '203.0.113.5' },
  { ip: 'ip6', node: '2001:db8::1', far: '2001:db8::9', old: '2001:db8:1::7', sender: '2001:db8:2::5' },
];

const rewriting = ({ ip, old, far }: Case): TableSpec => ({
  family: 'inet',
  name: 'rewriting',
  chains: [
    {
      name: 'post',
      base: { type: 'filter', hook: 'postrouting', priority: -150 },
      rules: [
        {
          comment: 'to its new destination',
          expressions: [
            { match: 'payload', field: `${ip}.daddr`, op: '==', value: old },
            { set: `${ip}.daddr` as const, to: far },
            { do: 'counter' },
          ],
        },
      ],
    },
  ],
});

const within = (ns: Netns, ...argv: string[]): string =>
  execFileSync('nsenter', [`--net=${ns.path}`, ...argv], { encoding: 'utf8' });

const addTun = (ns: Netns, name: string): void => {
  createTun({ name, netnsFd: ns.fd });
  within(ns, 'ip', 'link', 'set', name, 'up');
};

/** Both families' addresses and routes: the old destinations, too, are behind `out`. */
const prepare = (node: Netns, peer: Netns): void => {
  for (const name of ['in', 'out']) addTun(node, name);
  addTun(peer, 'wire');
  within(node, 'sysctl', '-qw', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  for (const { node: own, far, old, sender } of FAMILIES) {
    const bits = own.includes(':') ? 128 : 32;
    const optional = bits === 128 ? ['nodad'] : [];
    within(node, 'ip', 'address', 'add', `${own}/${bits}`, 'dev', 'out', ...optional);
    within(peer, 'ip', 'address', 'add', `${far}/${bits}`, 'dev', 'wire', ...optional);
    within(node, 'ip', 'route', 'add', sender, 'dev', 'in');
    for (const to of [far, old]) within(node, 'ip', 'route', 'add', to, 'dev', 'out');
    for (const to of [own, sender]) within(peer, 'ip', 'route', 'add', to, 'dev', 'wire');
  }
};

/** UDP from the node itself, of which the kernel has not made the checksum yet when the rule sees it. */
const sendAsNode = (node: Netns, { node: own, old }: Case, text: string): void => {
  const sender = createSocket(old.includes(':') ? 'udp6' : 'udp4');
  sender.bind({ fd: openUdp({ address: own, port: 5000, netnsFd: node.fd }) });
  sender.send(text, PORT, old, () => sender.close());
};

describe.each(FAMILIES)('$ip daddr', (family) => {
  const { ip, sender, old, far, node: own } = family;
  const open: Disposable[] = [];
  const left: Uint8Array[] = [];
  const received: string[] = [];
  let node: Netns;
  let nft: Nftables;
  let into: Tun;
  let socket: Socket;

  beforeEach(async () => {
    const peer = createNetns();
    node = createNetns();
    open.push(node, peer);
    prepare(node, peer);
    nft = createNftables({ netnsFd: node.fd });
    const wire = openTun({ name: 'wire', netnsFd: peer.fd, onPacket: () => undefined });
    const onPacket = (packet: Uint8Array): void => {
      left.push(Uint8Array.from(packet));
      wire.inject(packet);
    };
    into = openTun({ name: 'in', netnsFd: node.fd, onPacket: () => undefined });
    open.push(wire, into, openTun({ name: 'out', netnsFd: node.fd, onPacket }));
    socket = createSocket(far.includes(':') ? 'udp6' : 'udp4');
    socket.on('message', (bytes, { address }) => received.push(`${bytes.toString()} from ${address}`));
    socket.bind({ fd: openUdp({ address: far, port: PORT, netnsFd: peer.fd }) });
    await nft.replaceTable(rewriting(family));
  });
  afterEach(() => {
    socket.close();
    nft.close();
    for (const one of open.splice(0).toReversed()) one[Symbol.dispose]();
    left.length = 0;
    received.length = 0;
  });

  /** Without what every router changes: the hops, and IPv4's checksum for them, which the receiver's kernel has looked at. */
  const beyondHops = (packet: Uint8Array): string =>
    hexOf(packet.map((byte, at) => ((ip === 'ip' ? [8, 10, 11] : [7]).includes(at) ? 0 : byte)));
  /** UDP that left the node; a repetition counts once. */
  const leaving = (): string[] => [
    ...new Set(left.filter((packet) => packet[ip === 'ip' ? 9 : 6] === 17).map(beyondHops)),
  ];

  const inject = (packet: Uint8Array): void => expect(into.inject(packet)).toBe(0);
  /** Sends until something arrives: what leaves by a TUN is lost until the kernel has noticed that it is attached to. */
  const arrival = async (send: () => void): Promise<string[]> => {
    await until('it has arrived', () => {
      if (received.length > 0) return true;
      send();
      return false;
    });
    return [...new Set(received)];
  };

  test('of a forwarded packet is another, and nothing else but the checksums', async () => {
    const payload = Buffer.from('forwarded');
    const made = (destination: string) => datagram({ source: sender, destination }, [5000, PORT], payload);
    expect(await arrival(() => inject(made(old)))).toEqual([`forwarded from ${sender}`]);
    expect(leaving()).toEqual([beyondHops(made(far))]);
  });

  test("of a packet of the node's own is another", async () => {
    expect(await arrival(() => sendAsNode(node, family, 'own'))).toEqual([`own from ${own}`]);
  });

  test('is no drift once it is written, and a packet to elsewhere keeps its own', async () => {
    await nft.replaceTable(rewriting(family)); // a second time
    expect(await nft.drift(rewriting(family))).toBeUndefined();
    expect(await nft.drift(rewriting({ ...family, far: own }))).toBe('rule 1 of chain post differs');
    const kept = datagram({ source: sender, destination: far }, [5000, PORT], Buffer.from('kept'));
    await arrival(() => inject(kept));
    expect(leaving()).toEqual([beyondHops(kept)]);
    expect(within(node, 'nft', 'list', 'table', 'inet', 'rewriting')).toContain('counter packets 0 ');
  });
});
