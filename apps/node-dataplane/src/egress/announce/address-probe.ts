import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { addressBytes, addressText, type PacketSocketOptions } from '@unbounded/netlink';
import type { AnnouncedLink, OpenSocket } from './announced-link.ts';
import { ARP, arpProbe, decodeArp, ETHERTYPE_ARP, NO_ADDRESS } from './arp.codec.ts';
import { decodeNeighborMessage, ETHERTYPE_IPV6, neighborProbe, solicitedNodeGroup, UNSPECIFIED } from './ndp.codec.ts';

export interface ProbeTimings {
  /** The first probe is sent at a random moment within: nodes that start together do not all speak at once. */
  readonly firstWithinMs: number;
  readonly betweenMs: number;
  /** How long answers are awaited after the last one. */
  readonly listenMs: number;
}

export interface ProbeOptions {
  readonly address: string;
  readonly link: AnnouncedLink;
  readonly open: OpenSocket;
  readonly timings?: ProbeTimings;
  readonly signal?: AbortSignal;
}

export type ProbeOutcome = { readonly isFree: true } | { readonly isFree: false; readonly mac: string };

/**
 * About a second in all, where RFC 5227 takes seven: its times are for hosts on slow radio links, and all the while the address is served
 * by nobody.
 */
const TIMINGS: ProbeTimings = { firstWithinMs: 100, betweenMs: 250, listenMs: 350 };
const PROBES = 3; // PROBE_NUM; also for IPv6, where one frame that is lost would make an address free

interface Question {
  readonly reads: Pick<PacketSocketOptions, 'etherType' | 'group'>;
  readonly frame: Uint8Array;
  /** The MAC of another one that has the address or wants it, as this frame says. */
  readonly claimantIn: (frame: Uint8Array) => string | undefined;
}

/** RFC 5227, 2.1.1. */
const arpQuestion = (address: string, mac: string): Question => ({
  reads: { etherType: ETHERTYPE_ARP },
  frame: arpProbe(address, mac),
  claimantIn: (frame) => {
    const packet = decodeArp(frame);
    if (!packet || packet.senderMac === mac) return undefined;
    const isProbe =
      packet.operation === ARP.request && packet.senderAddress === NO_ADDRESS && packet.targetAddress === address;
    return isProbe || packet.senderAddress === address ? packet.senderMac : undefined;
  },
});

/** RFC 4862, 5.4.3 and 5.4.4. */
const neighborQuestion = (address: string, mac: string): Question => ({
  reads: { etherType: ETHERTYPE_IPV6, group: solicitedNodeGroup(address) },
  frame: neighborProbe(address, mac),
  claimantIn: (frame) => {
    const message = decodeNeighborMessage(frame);
    if (message?.target !== address) return undefined;
    const isProbe = message.kind === 'solicitation' && message.source === UNSPECIFIED;
    const claimant = message.kind === 'advertisement' ? (message.linkLayerMac ?? message.sourceMac) : message.sourceMac;
    // One's own comes back where a switch mirrors it. Other solicitations are of those who look for the address.
    return claimant !== mac && (isProbe || message.kind === 'advertisement') ? claimant : undefined;
  },
});

const questionFor = (text: string, mac: string): Question => {
  const bytes = addressBytes(text);
  return (bytes.length === 4 ? arpQuestion : neighborQuestion)(addressText(bytes), mac.toLowerCase());
};

/**
 * Whether anybody else on the LAN has the address, or probes for it at the same time: of two that do, at most one is told that it is
 * free. That one has to announce it at once, for those whose probe began as this one ended.
 * @throws the signal's reason; Error of the socket (ENETDOWN, ENODEV, …): then nothing is known
 */
export const probeAddress = async ({
  address,
  link,
  open,
  timings = TIMINGS,
  signal,
}: ProbeOptions): Promise<ProbeOutcome> => {
  signal?.throwIfAborted();
  const question = questionFor(address, link.mac);
  using socket = open({ link: link.index, ...question.reads });
  let mac: string | undefined;
  const claimed = new AbortController();
  socket.onFrame((frame) => {
    mac ??= question.claimantIn(frame);
    if (mac !== undefined) claimed.abort();
  });
  const over = AbortSignal.any([claimed.signal, ...(signal ? [signal] : [])]);
  const listen = (ms: number): Promise<void> => sleep(ms, undefined, { signal: over }).catch(() => {});

  await listen(Math.random() * timings.firstWithinMs);
  for (let sent = 1; sent <= PROBES && !over.aborted; sent++) {
    socket.send(question.frame);
    await listen(sent < PROBES ? timings.betweenMs : timings.listenMs);
  }
  // Timers come before what a busy thread has not read: the socket's buffer holds some 280 frames, of which a turn reads 256.
  for (let turns = 0; turns < 3 && !over.aborted; turns++) await nextTurn();
  signal?.throwIfAborted();
  return mac === undefined ? { isFree: true } : { isFree: false, mac };
};
