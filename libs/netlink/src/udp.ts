import { addon } from './native.ts';

export interface UdpOptions {
  /** Numeric, IPv4 or IPv6; it may come to the node later than the socket. */
  readonly address: string;
  readonly port: number;
  readonly netnsFd?: number;
  /** What may wait in the kernel to be sent, also beyond `wmem_max`; it doubles this for its own overhead. Absent: its default. */
  readonly sendBufferBytes?: number;
  /** Others that say so too may be bound to the same address and port; each datagram comes to one of them. */
  readonly sharesPort?: boolean;
}

/**
 * A bound UDP socket as a file descriptor, for `dgram`'s `bind({ fd })`, which takes it over. Its datagrams leave whole,
 * with DF set, whatever path MTU the kernel has learned (IP_PMTUDISC_PROBE), or not at all: EMSGSIZE above the device's.
 * @throws Error with `code` EADDRINUSE, EAFNOSUPPORT, …; TypeError when the address is none
 */
export const openUdp = ({ address, port, netnsFd = -1, sendBufferBytes = 0, sharesPort = false }: UdpOptions): number =>
  addon().openUdp(address, port, netnsFd, sendBufferBytes, sharesPort);
