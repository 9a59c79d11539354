import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Netns } from '@unbounded/netlink';
import { until } from '@unbounded/testing';
import { type LineServer, startLineServer } from '@unbounded/testing/line-server';
import {
  EARLIER,
  GATEWAY,
  type Host,
  HOSTILE,
  type Make,
  NEIGHBOR,
  POD,
  REMOTE,
  SILENT_MAC,
} from './attempts.testdata.ts';
import { arp, ethernet, ipv4, TYPE, udp } from './frames.testdata.ts';
import { type Network, run } from './guard-network.testdata.ts';

/** Sends frames from pods and finds out which of them anybody got. */

/** Built from frame-socket.c. */
const sender = process.argv[2]!;

interface Received {
  seen(marker: string): boolean;
  /** The frame that has the marker; empty: none. */
  lineWith(marker: string): string;
  stop(): void;
}

/** Everything that comes in at a device of a namespace, in hexadecimal. */
export const receive = async (argv: string[]): Promise<Received> => {
  const child: ChildProcess = spawn(argv[0]!, argv.slice(1), { stdio: ['ignore', 'pipe', 'inherit'] });
  let seen = '';
  child.stdout!.setEncoding('latin1').on('data', (chunk: string) => (seen += chunk));
  await until('a receiver is ready', () => seen.startsWith('ready'));
  const lineWith = (marker: string): string => seen.split('\n').find((line) => line.includes(marker)) ?? '';
  return { seen: (marker) => seen.includes(marker), lineWith, stop: () => child.kill() };
};

/** Datagrams for the node itself, however they came. */
const listen = async (): Promise<Pick<Received, 'seen' | 'stop'>> => {
  const socket = createSocket({ type: 'udp6', ipv6Only: false }).bind(7000, '::');
  let seen = '';
  socket.on('message', (message) => (seen += message.toString('hex')));
  await once(socket, 'listening');
  return { seen: (marker) => seen.includes(marker), stop: () => socket.close() };
};

export const markerOf = (kind: number, index: number): Uint8Array =>
  Uint8Array.of(0xbe, 0xef, 0xfa, 0xce, 0xd0, kind, index, 0x5a);
export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
/** A process for each namespace that sends, until `end`. */
const openSenders = () => {
  const senders = new Map<Netns, LineServer>();
  return {
    async send(ns: Netns, frame: Uint8Array): Promise<void> {
      const one = senders.get(ns) ?? startLineServer('nsenter', [`--net=${ns.path}`, sender, 'send', 'eth0']);
      senders.set(ns, one);
      await one.ask(hex(frame));
    },
    end(): void {
      for (const one of senders.values()) one.end();
    },
  };
};

/** The neighbor's own gratuitous ARP. */
const ANNOUNCEMENT = ethernet(
  { to: 'ff:ff:ff:ff:ff:ff', from: NEIGHBOR.mac },
  TYPE.arp,
  arp(1, [NEIGHBOR.mac, NEIGHBOR.v4], NEIGHBOR.v4),
);

const [PLAIN, LAST] = [1, 0xff];

export interface Sending {
  readonly from: Netns;
  readonly makes: readonly Make[];
  /** Honest frames, each of which arrives ({@link sentinelsOf}); by the same pod where no other is named. */
  readonly sentinels: readonly Make[];
  readonly by?: Netns;
  /** Besides arriving, what else counts as having got through. */
  readonly hasTaught?: (index: number) => boolean;
}

/** Sends all of them, one by one, and says of each whether it was seen anywhere. */
export const tryAll = async (
  network: Network,
  { from, makes, sentinels, by = from, hasTaught = () => false }: Sending,
): Promise<boolean[]> => {
  const inside = [network.pod, network.neighbor, network.earlier, network.remote].filter((ns) => ns !== from);
  const [node, bridge, ...others] = await Promise.all([
    listen(),
    receive([sender, 'receive', 'cbr0']),
    ...inside.map((ns) => receive(['nsenter', `--net=${ns.path}`, sender, 'receive', 'eth0'])),
  ]);
  const remote = others[inside.indexOf(network.remote)]!;
  const receivers = [node, bridge, ...others];
  const isSeen = (kind: number, index: number, at: readonly Pick<Received, 'seen'>[] = receivers): boolean =>
    at.some((receiver) => receiver.seen(hex(markerOf(kind, index))));
  /** Each receiver is a process of its own, and may be later than the others. */
  const hasArrived = (index: number): boolean =>
    [[others], [[node], [bridge]], [[remote]]][index]!.every((at) => isSeen(LAST, index, at));
  // What one attempt taught the bridge and the neighbors is not to hide the next.
  const senders = openSenders();
  const restore = (): Promise<void> => senders.send(network.neighbor, ANNOUNCEMENT);
  const taught: boolean[] = [];
  for (const [index, make] of makes.entries()) {
    await restore();
    await senders.send(from, make(markerOf(PLAIN, index)));
    taught.push(hasTaught(index));
  }
  await restore();
  for (const [index, make] of sentinels.entries()) await senders.send(by, make(markerOf(LAST, index)));
  // What is sent later arrives later: with these nothing is under way any more.
  for (const index of sentinels.keys()) await until(`honest frame ${index} arrives`, () => hasArrived(index));
  const arrived = makes.map((_, index) => taught[index]! || isSeen(PLAIN, index));
  for (const receiver of receivers) receiver.stop();
  senders.end();
  return arrived;
};

/** To a neighbor, to the node and to beyond. */
export const sentinelsOf = ({ mac, v4 }: Host): Make[] =>
  [mac === NEIGHBOR.mac ? EARLIER : NEIGHBOR, GATEWAY, REMOTE].map((target) => (marker) => {
    const route = { from: v4, to: target.v4 };
    const via = target === REMOTE ? GATEWAY.mac : target.mac;
    return ethernet({ to: via, from: mac }, TYPE.ipv4, ipv4(route, 17, udp(route, marker)));
  });

/** Whether the bridge has learned the MAC at the pod's port since it was last asked. */
const takeLearned = (): boolean => {
  const isKnown = new RegExp(`^${SILENT_MAC} dev veth0 `, 'm').test(run('bridge', 'fdb', 'show', 'br', 'cbr0'));
  if (isKnown) run('bridge', 'fdb', 'del', SILENT_MAC, 'dev', 'veth0', 'master');
  return isKnown;
};

/** The hostile attempts that no port shows, and then the others, beside which something may go on. */
export const tryHostile = async (network: Network, beside: () => void = () => {}): Promise<boolean[]> => {
  const sending = { from: network.pod, sentinels: sentinelsOf(POD) };
  const [shown, unshown] = [
    HOSTILE.filter(({ isLearned }) => !isLearned),
    HOSTILE.filter(({ isLearned }) => isLearned),
  ];
  const makes = (attempts: typeof HOSTILE): Make[] => attempts.map(({ make }) => make);
  const taught = await tryAll(network, { ...sending, makes: makes(unshown), hasTaught: takeLearned });
  beside();
  const arrived = await tryAll(network, { ...sending, makes: makes(shown) });
  return HOSTILE.map((attempt) =>
    attempt.isLearned ? taught[unshown.indexOf(attempt)]! : arrived[shown.indexOf(attempt)]!,
  );
};
