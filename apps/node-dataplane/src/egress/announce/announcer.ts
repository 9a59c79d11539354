import { addressBytes, addressText } from '@unbounded/netlink';
import type { AnnouncedLink, OpenSocket } from './announced-link.ts';
import { arpAnnouncements } from './arp.codec.ts';
import { neighborAnnouncement } from './ndp.codec.ts';

/** Tells the neighbors on a LAN that an address is here now: what they knew of it sends their packets to its former owner. */
export interface Announcer {
  /**
   * The first time before it returns. An address that is being announced begins anew, on this link.
   * @throws AddressSyntaxError or RangeError for what is no address or MAC
   */
  announce(address: string, link: AnnouncedLink): void;
  /** After it returns nothing is sent for this address. */
  cancel(address: string): void;
  /** Cancels all, and what is announced after it. */
  close(): void;
}

export interface AnnouncerOptions {
  readonly open: OpenSocket;
  /** When each announcement is sent, from the first. */
  readonly offsetsMs?: readonly number[];
  /** Asked before each: what is not this node's any more is not announced, though nobody has cancelled it yet. Not set: it always may. */
  readonly mayAnnounce?: (address: string) => boolean;
  /** One announcement was not sent; the later ones are tried all the same. */
  readonly onProblem: (address: string, error: unknown) => void;
}

/** Three, since frames get lost; the later ones for a LAN that was cut, or whose switches were learning, when the owner changed. */
const OFFSETS_MS = [0, 150, 300, 5_000, 30_000] as const;

const framesOf = (address: string, mac: string): readonly Uint8Array[] =>
  addressBytes(address).length === 4 ? arpAnnouncements(address, mac) : [neighborAnnouncement(address, mac)];

const canonical = (address: string): string => addressText(addressBytes(address));

export const createAnnouncer = ({
  open,
  offsetsMs = OFFSETS_MS,
  mayAnnounce = () => true,
  onProblem,
}: AnnouncerOptions): Announcer => {
  const pending = new Map<string, NodeJS.Timeout[]>();
  let isClosed = false;

  const cancel = (address: string): void => {
    for (const timer of pending.get(address) ?? []) clearTimeout(timer);
    pending.delete(address);
  };

  /** By a socket of its own: the link may be another device of the same name, or down, half a minute later. */
  const send = (address: string, link: number, frames: readonly Uint8Array[]): void => {
    if (!mayAnnounce(address)) return;
    try {
      using socket = open({ link });
      for (const frame of frames) socket.send(frame);
    } catch (error) {
      onProblem(address, error);
    }
  };

  const announce = (address: string, { index, mac }: AnnouncedLink): void => {
    const frames = framesOf(address, mac);
    cancel(address);
    const [now = 0, ...later] = offsetsMs;
    const timers = later.map((offsetMs) => setTimeout(() => send(address, index, frames), offsetMs - now));
    pending.set(address, timers);
    send(address, index, frames);
  };

  return {
    announce: (address, link) => {
      if (!isClosed) announce(canonical(address), link);
    },
    cancel: (address) => cancel(canonical(address)),
    close: () => {
      isClosed = true;
      for (const address of pending.keys()) cancel(address);
    },
  };
};
