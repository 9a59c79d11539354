import type { PacketSocket, PacketSocketOptions } from '@unbounded/netlink';

/** An Ethernet device on whose LAN an address is announced or probed, and its own MAC: answers to another one are not read. */
export interface AnnouncedLink {
  readonly index: number;
  readonly mac: string;
}

export type OpenSocket = (options: PacketSocketOptions) => PacketSocket;
