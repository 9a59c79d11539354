import { addressBytes } from './address.codec.ts';
import { addon } from './native.ts';
import { forEachPacket } from './tun.ts';

/** Whole Ethernet frames out of and into one device, past addresses, routes and neighbor tables of the kernel. */
export interface PacketSocket extends Disposable {
  /**
   * Sends now: the frame begins with its Ethernet header and has at most 2,048 bytes.
   * @throws Error with `code` ENETDOWN (the device is down, or has no carrier), ENODEV (it is gone), EMSGSIZE, …
   */
  send(frame: Uint8Array): void;
  /** Who gets the frames that come from now on, instead of whoever got them. Those of this socket are not among them. */
  onFrame(handler: (frame: Uint8Array) => void): void;
  /** After it no handler is called. */
  close(): void;
}

export interface PacketSocketOptions {
  /** Index of an Ethernet device. */
  readonly link: number;
  /**
   * Of the frames that are read; absent: none. Of 0x86dd (IPv6) neighbor solicitations and advertisements alone. What is tagged for a
   * VLAN is of another network and never read, nor what is for another host.
   */
  readonly etherType?: number;
  /** An IPv6 multicast address: the device is a member of it while the socket is open, also for switches that ask for members. */
  readonly group?: string;
  readonly netnsFd?: number;
}

/**
 * @throws Error with `code` EPERM (it needs CAP_NET_RAW), ENODEV, EMEDIUMTYPE (it is not Ethernet), …; TypeError or RangeError
 * for what is no index, EtherType or group
 */
export const openPacketSocket = ({ link, etherType = 0, group, netnsFd = -1 }: PacketSocketOptions): PacketSocket => {
  const native = addon();
  let handler: ((frame: Uint8Array) => void) | undefined;
  const handle = native.openPacket(
    link,
    etherType,
    group === undefined ? undefined : addressBytes(group),
    netnsFd,
    (bytes) =>
      // One that closes the socket gets nothing more of the same batch.
      forEachPacket(bytes, (frame) => handler?.(frame)),
  );
  const close = (): void => {
    handler = undefined;
    native.closePacket(handle);
  };
  return {
    send: (frame) => native.sendFrame(handle, frame),
    onFrame: (next) => {
      handler = next;
    },
    close,
    [Symbol.dispose]: close,
  };
};
