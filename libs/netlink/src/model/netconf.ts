import type { IpFamily } from './route.ts';

/** Settings of IP on a device, or of all devices, as the kernel tells of their change (linux/netconf.h). */
export interface Netconf {
  readonly family: IpFamily;
  /** Index of the device; all: `net.ipv4.conf.all`; default: for devices to come. */
  readonly link: number | 'all' | 'default';
  /** Absent: the message is about another setting. */
  readonly forwarding?: boolean;
  /** 0 off, 1 strict, 2 loose (RFC 3704). IPv4 alone. */
  readonly rpFilter?: number;
}
