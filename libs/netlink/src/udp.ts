import { addon } from './native.ts';

export interface UdpOptions {
  /** Numeric, IPv4 or IPv6; it may come to the node later than the socket. */
  readonly address: string;
  readonly port: number;
  readonly netnsFd?: number;
}

/**
 * A bound UDP socket as a file descriptor, for `dgram`'s `bind({ fd })`, which takes it over. Its datagrams leave whole,
 * with DF set, whatever path MTU the kernel has learned (IP_PMTUDISC_PROBE), or not at all: EMSGSIZE above the device's.
 * @throws Error with `code` EADDRINUSE, EAFNOSUPPORT, …; TypeError when the address is none
 */
export const openUdp = ({ address, port, netnsFd = -1 }: UdpOptions): number => addon().openUdp(address, port, netnsFd);
