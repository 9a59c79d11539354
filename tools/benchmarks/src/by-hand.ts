import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { inNamespace, run, tryRun } from '@unbounded/rig/command';
import { type LabNode, namespaceOf } from '@unbounded/rig/layout';
import { binary } from '@unbounded/rig/paths';
import { generatePrivateKey, openUserspaceDevice, publicKeyOf } from '@unbounded/wireguard';

/**
 * The reference: a path between two nodes of the lab as an administrator would lay it by hand, beside ours and with the
 * same MTU. On each node a bridge with one namespace as a pod, and a route to the other's through a tunnel of its own.
 */

/** One end of a path: how to run a command there, and its address. */
export interface End {
  readonly enter: readonly string[];
  readonly ip: string;
}

export interface Path {
  readonly ends: readonly [End, End];
  [Symbol.asyncDispose](): Promise<void>;
}

const TUNNEL = 'vxlan9';
const BRIDGE = 'bench0';
const VXLAN_PORT = 8479; // ours has the standard one
const WIREGUARD_PORT = 51979;
const START_DEADLINE_MS = 5000;

/** What differs between the two sides. */
interface Side {
  readonly node: LabNode;
  /** Network namespaces of the node and of the pod. */
  readonly namespace: string;
  readonly pod: string;
  /** Address by which the other node reaches this one. */
  readonly underlay: string;
  readonly prefix: string;
  readonly mac: string;
  readonly wireguard: string;
}

const sideOf = (node: LabNode, index: number, underlay: string): Side => ({
  node,
  namespace: namespaceOf(node.name),
  pod: `bench-${node.name}`,
  underlay,
  prefix: `172.31.${101 + index}`,
  mac: `02:00:00:00:09:0${index + 1}`,
  wireguard: `bench9${index + 1}`,
});

const ipBatch = (namespace: string, lines: readonly string[]): string =>
  run(['ip', '-n', namespace, '-batch', '-'], { input: lines.map((line) => `${line}\n`).join('') });

const makePod = (side: Side, mtu: number): void => {
  run(['ip', 'netns', 'add', side.pod]);
  ipBatch(side.namespace, [
    `link add ${BRIDGE} mtu ${mtu} type bridge`,
    `addr add ${side.prefix}.1/24 dev ${BRIDGE}`,
    `link set ${BRIDGE} up`,
    `link add bench1 mtu ${mtu} type veth peer name eth0 netns ${side.pod} mtu ${mtu}`,
    `link set bench1 master ${BRIDGE} up`,
  ]);
  ipBatch(side.pod, [
    'link set lo up',
    'link set eth0 up',
    `addr add ${side.prefix}.2/24 dev eth0`,
    `route add default via ${side.prefix}.1`,
  ]);
};

const removeSide = (side: Side): void => {
  for (const link of [BRIDGE, 'bench1', TUNNEL, side.wireguard])
    tryRun(['ip', '-n', side.namespace, 'link', 'delete', link]);
  tryRun(['ip', 'netns', 'delete', side.pod]);
};

const endOf = (side: Side): End => ({ enter: inNamespace(side.pod), ip: `${side.prefix}.2` });

/** The path with what `lay` puts between the pods; whatever happens, all of it can be taken away again. */
const makePath = async (
  sides: readonly [Side, Side],
  mtu: number,
  lay: (near: Side, far: Side, undo: (() => void)[]) => Promise<void> | void,
): Promise<Path> => {
  const undo: (() => void)[] = sides.map((side) => () => removeSide(side));
  const dispose = (): void => undo.reverse().forEach((step) => step());
  try {
    sides.forEach(removeSide); // of a benchmark that was killed
    for (const side of sides) makePod(side, mtu);
    await lay(sides[0], sides[1], undo);
    await lay(sides[1], sides[0], undo);
  } catch (error) {
    dispose();
    throw error;
  }
  return { ends: [endOf(sides[0]), endOf(sides[1])], [Symbol.asyncDispose]: async () => dispose() };
};

/** Kernel VXLAN with a static forwarding entry, between nodes of one LAN. */
export const vxlanByHand = ([from, to]: readonly [LabNode, LabNode], mtu: number): Promise<Path> =>
  makePath([sideOf(from, 0, from.internalIp), sideOf(to, 1, to.internalIp)], mtu, (near, far) => {
    ipBatch(near.namespace, [
      `link add ${TUNNEL} address ${near.mac} mtu ${mtu} type vxlan id 9 dstport ${VXLAN_PORT} local ${near.underlay} dev eth0 nolearning`,
      `link set ${TUNNEL} up`,
      `neigh add ${far.prefix}.1 lladdr ${far.mac} dev ${TUNNEL} nud permanent`,
      `route add ${far.prefix}.0/24 via ${far.prefix}.1 dev ${TUNNEL} onlink`,
    ]);
    run([
      'bridge',
      '-n',
      near.namespace,
      'fdb',
      'add',
      far.mac,
      'dev',
      TUNNEL,
      'dst',
      far.underlay,
      'self',
      'permanent',
    ]);
  });

/** One subnet on both nodes: the pods' MACs are theirs, and known to the other bridge. */
const LAN_PREFIX = '172.31.103';
const lanMac = (side: Side): string => side.mac.replace('02:', '06:');
const lanIp = (side: Side): string => `${LAN_PREFIX}.${side.prefix.slice(-1)}`;

/** A bridge over kernel VXLAN with static forwarding entries, between nodes of one LAN. */
export const bridgeByHand = async ([from, to]: readonly [LabNode, LabNode], mtu: number): Promise<Path> => {
  const sides = [sideOf(from, 0, from.internalIp), sideOf(to, 1, to.internalIp)] as const;
  const path = await makePath(sides, mtu, (near, far) => {
    ipBatch(near.namespace, [
      `addr flush dev ${BRIDGE}`,
      `link add ${TUNNEL} mtu ${mtu} type vxlan id 9 dstport ${VXLAN_PORT} local ${near.underlay} dev eth0 nolearning`,
      `link set ${TUNNEL} master ${BRIDGE} up`,
    ]);
    const fdb = (...words: string[]): string => run(['bridge', '-n', near.namespace, 'fdb', 'replace', ...words]);
    fdb(lanMac(far), 'dev', TUNNEL, 'dst', far.underlay, 'self', 'permanent');
    fdb(lanMac(far), 'dev', TUNNEL, 'master', 'static');
    ipBatch(near.pod, [
      'addr flush dev eth0',
      `link set eth0 address ${lanMac(near)}`,
      `addr add ${lanIp(near)}/24 dev eth0`,
      `neigh replace ${lanIp(far)} lladdr ${lanMac(far)} dev eth0 nud permanent`,
    ]);
  });
  const ends = sides.map((side) => ({ enter: inNamespace(side.pod), ip: lanIp(side) }));
  return { ...path, ends: [ends[0]!, ends[1]!] };
};

/** Of the nodes in the underlay of SRv6, and the segments (RFC 8986) of their pods. */
const SEG6_PREFIX = 'fd00:77:0:0';
const seg6Node = (side: Side): string => `${SEG6_PREFIX}::${side.prefix.slice(-1)}`;
const seg6Segment = (side: Side): string => `fd00:78:0:${side.prefix.slice(-1)}::2`;

/**
 * The kernel's own SRv6 with whole frames (H.Encaps.L2.Red and End.DX2), between nodes of one LAN. It routes: a pod sends to the MAC of its
 * bridge, which is therefore that of the pod behind the far end. It cannot segment: pods send no superpackets.
 */
export const seg6ByHand = ([from, to]: readonly [LabNode, LabNode], mtu: number): Promise<Path> =>
  makePath([sideOf(from, 0, from.internalIp), sideOf(to, 1, to.internalIp)], mtu, (near, far, undo) => {
    undo.push(() => {
      for (const words of [
        `route del ${far.prefix}.2/32 dev eth0`,
        `-6 route del ${seg6Segment(near)}/128 dev eth0`,
        `-6 route del ${seg6Segment(far)}/128 dev eth0`,
        `-6 addr del ${seg6Node(near)}/64 dev eth0`,
      ])
        tryRun(['ip', '-n', near.namespace, ...words.split(' ')]);
    });
    ipBatch(near.namespace, [
      `link set ${BRIDGE} address ${lanMac(far)}`,
      `addr replace ${seg6Node(near)}/64 dev eth0 nodad`,
      `route replace ${seg6Segment(far)}/128 via ${seg6Node(far)} dev eth0 onlink`,
      `route replace ${far.prefix}.2/32 encap seg6 mode l2encap.red segs ${seg6Segment(far)} dev eth0`,
      `route replace ${seg6Segment(near)}/128 encap seg6local action End.DX2 oif bench1 dev eth0`,
    ]);
    ipBatch(near.pod, [
      `link set eth0 address ${lanMac(near)}`,
      `neigh replace ${near.prefix}.1 lladdr ${lanMac(far)} dev eth0 nud permanent`,
    ]);
    run([...inNamespace(near.pod), 'ethtool', '-K', 'eth0', 'tso', 'off', 'gso', 'off']);
  });

/** @returns what ends it */
const startWireguardGo = async (side: Side, sockets: string): Promise<() => void> => {
  const [program, ...args] = [...inNamespace(side.namespace), binary('wireguard-go'), '-f', side.wireguard];
  const child = spawn(program, args, {
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true, // a session, and so a share of the processors, of its own, as the keeper's has
    env: { ...process.env, WG_UAPI_DIR: sockets },
  });
  const socket = join(sockets, `${side.wireguard}.sock`);
  for (const end = Date.now() + START_DEADLINE_MS; !existsSync(socket); await delay(20)) {
    if (child.exitCode === null && Date.now() < end) continue;
    child.kill('SIGTERM');
    throw new Error(`wireguard-go on ${side.node.name} did not open ${socket} within ${START_DEADLINE_MS} ms`);
  }
  return () => child.kill('SIGTERM');
};

interface Tunnel {
  readonly side: Side;
  readonly privateKey: string;
}

const configure = async (near: Tunnel, far: Tunnel, sockets: string): Promise<void> => {
  const socketPath = join(sockets, `${near.side.wireguard}.sock`);
  await using device = openUserspaceDevice(near.side.wireguard, { socketPath });
  const endpoint = `${far.side.underlay}:${WIREGUARD_PORT}`;
  const allowedIps = [`${far.side.prefix}.0/24`];
  await device.apply({
    privateKey: near.privateKey,
    listenPort: WIREGUARD_PORT,
    peers: [{ op: 'add', publicKey: publicKeyOf(far.privateKey), endpoint, allowedIps }],
  });
};

/** The same wireguard-go that we run, between nodes that reach each other by their external addresses. */
export const wireguardByHand = ([from, to]: readonly [LabNode, LabNode], mtu: number): Promise<Path> => {
  const sides = [sideOf(from, 0, from.external!.ip), sideOf(to, 1, to.external!.ip)] as const;
  const tunnels = sides.map((side): Tunnel => ({ side, privateKey: generatePrivateKey() }));
  return makePath(sides, mtu, async (near, far, undo) => {
    const sockets = mkdtempSync(join(tmpdir(), 'bench-wg-'));
    undo.push(() => rmSync(sockets, { recursive: true }));
    undo.push(await startWireguardGo(near, sockets));
    const tunnelOf = (side: Side): Tunnel => tunnels.find((tunnel) => tunnel.side === side)!;
    await configure(tunnelOf(near), tunnelOf(far), sockets);
    ipBatch(near.namespace, [
      `link set ${near.wireguard} mtu ${mtu} up`,
      `route add ${far.prefix}.0/24 dev ${near.wireguard}`,
    ]);
  });
};
