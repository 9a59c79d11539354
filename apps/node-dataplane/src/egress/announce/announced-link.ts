import type { PacketSocket, PacketSocketOptions } from '@unbounded/netlink';

/** An Ethernet device on whose LAN an address is announced or probed, and the MAC by which neighbors reach it there. */
export interface AnnouncedLink {
  readonly index: number;
  readonly mac: string;
}

export type OpenSocket = (options: PacketSocketOptions) => PacketSocket;
