import { GATEWAY, POD, REMOTE } from '../source-guard/attempts.testdata.ts';
import {
  be16,
  ethernet,
  ipv4,
  ipv6,
  join,
  optionsHeader,
  sumOf,
  TYPE,
  u8,
  udp,
} from '../source-guard/frames.testdata.ts';

/** Frames of a pod whose checksum is left to a device, there or elsewhere. */

export interface LateFrame {
  readonly what: string;
  /** Where the device sums up from, and where from there it writes: bytes from the beginning of the frame. */
  readonly start: number;
  readonly offset: number;
  readonly make: (marker: Uint8Array) => Uint8Array;
}

/** A frame in which the device is to write what no checksum is. */
export interface Rewrite extends LateFrame {
  readonly wanted: number;
}

const [ETHERNET, IPV4, IPV6] = [14, 20, 40];
const V4 = { from: POD.v4, to: REMOTE.v4 };
const V6 = { from: POD.v6, to: REMOTE.v6 };
const macs = { to: GATEWAY.mac, from: POD.mac };
const overV4 = (protocol: number, payload: Uint8Array, fragment = 0): Uint8Array =>
  ethernet(macs, TYPE.ipv4, ipv4(V4, protocol, payload, fragment));
const overV6 = (next: number, payload: Uint8Array): Uint8Array =>
  ethernet(macs, TYPE.ipv6, ipv6(V6, next, payload, 64));

/** The marker and a word by which the sum becomes what the sender wants (RFC 1071: a checksum is the complement of the sum). */
const aimed =
  (build: (payload: Uint8Array) => Uint8Array, start: number, wanted: number): LateFrame['make'] =>
  (marker) => {
    const withWord = (word: number): Uint8Array => build(join(marker, be16(word)));
    return withWord(sumOf(be16(~wanted & 0xffff, ~sumOf(withWord(0).subarray(start)) & 0xffff)));
  };

const rewrite = (
  what: string,
  build: (payload: Uint8Array) => Uint8Array,
  [start, offset, wanted]: readonly [start: number, offset: number, wanted: number],
): Rewrite => ({ what, start, offset, wanted, make: aimed(build, start, wanted) });

/** Without a checksum: a sum over it would be part of what the word has to correct. */
const plainUdp = (payload: Uint8Array): Uint8Array => join(be16(7000, 7000, 8 + payload.length, 0), payload);
const tcp = (payload: Uint8Array): Uint8Array => join(be16(7000, 7000, 0, 1, 0, 1, 0x5010, 1024, 0, 0), payload);
const [L4, L6] = [ETHERNET + IPV4, ETHERNET + IPV6];
const VXLAN = 4789;
const BEYOND = 0x2000; // more fragments

export const REWRITES: readonly Rewrite[] = [
  rewrite('port of UDP over IPv4', (payload) => overV4(17, plainUdp(payload)), [L4, 2, VXLAN]),
  rewrite('port of UDP over IPv6', (payload) => overV6(17, plainUdp(payload)), [L6, 2, VXLAN]),
  rewrite('port of TCP over IPv4', (payload) => overV4(6, tcp(payload)), [L4, 2, 22]),
  rewrite('port of TCP over IPv6', (payload) => overV6(6, tcp(payload)), [L6, 2, 22]),
  rewrite('flags of TCP', (payload) => overV4(6, tcp(payload)), [L4, 12, 0x5004]),
  rewrite('urgent pointer of TCP', (payload) => overV4(6, tcp(payload)), [L4, 18, 9]),
  rewrite('length of UDP', (payload) => overV4(17, plainUdp(payload)), [L4, 4, 9]),
  rewrite('source of IPv6', (payload) => overV6(17, plainUdp(payload)), [ETHERNET + 8, 14, 0x99]),
  rewrite('source of IPv4', (payload) => overV4(17, plainUdp(payload)), [ETHERNET + 6, 8, 0x1e99]),
  rewrite('port of UDP behind IPv6 options', (payload) => overV6(60, join(optionsHeader(17), plainUdp(payload))), [
    ...([L6 + 8, 2, VXLAN] as const),
  ]),
  rewrite('type of ICMP', (payload) => overV4(1, join(be16(0x0800, 0, 1, 1), payload)), [L4, 0, 0x0501]),
  rewrite('type of ICMPv6', (payload) => overV6(58, join(be16(0x8000, 0, 1, 1), payload)), [L6, 0, 0x8600]),
  rewrite('port in a first fragment', (payload) => overV4(17, plainUdp(join(payload, new Uint8Array(6))), BEYOND), [
    ...([L4, 2, VXLAN] as const),
  ]),
  rewrite('beginning of a later fragment', (payload) => overV4(17, join(u8(0, 0, 0, 0, 0, 0, 0, 0), payload), 1), [
    ...([L4, 2, VXLAN] as const),
  ]),
  rewrite('key of GRE without a checksum', (payload) => overV4(47, join(be16(0x2000, TYPE.ipv4, 0, 0), payload)), [
    ...([L4, 4, VXLAN] as const),
  ]),
  rewrite('port of an unknown protocol', (payload) => overV4(253, plainUdp(payload)), [L4, 2, VXLAN]),
];

const late = (what: string, make: LateFrame['make'], [start, offset]: readonly [number, number]): LateFrame => ({
  ...{ what, make, start, offset },
});
const innerV4 = (marker: Uint8Array): Uint8Array => ipv4({ from: '10.9.0.1', to: '10.9.0.2' }, 17, plainUdp(marker));

/** As the stack of a pod sends, on devices that fill checksums in: of its own packets, and of those in tunnels of its own. */
export const HONEST_LATE: readonly LateFrame[] = [
  late('UDP over IPv4', (marker) => overV4(17, plainUdp(marker)), [L4, 6]),
  late('UDP over IPv6', (marker) => overV6(17, plainUdp(marker)), [L6, 6]),
  late('TCP over IPv4', (marker) => overV4(6, tcp(marker)), [L4, 16]),
  late('TCP over IPv6', (marker) => overV6(6, tcp(marker)), [L6, 16]),
  late('UDP behind IPv6 options', (marker) => overV6(60, join(optionsHeader(17), plainUdp(marker))), [L6 + 8, 6]),
  late(
    'UDP in VXLAN',
    (marker) => overV4(17, plainUdp(join(u8(8, 0, 0, 0, 0, 0, 1, 0), ethernet(macs, TYPE.ipv4, innerV4(marker))))),
    [...([L4 + 8 + 8 + ETHERNET + IPV4, 6] as const)],
  ),
  late('UDP in IPIP', (marker) => overV4(4, innerV4(marker)), [L4 + IPV4, 6]),
  late('GRE', (marker) => overV4(47, join(be16(0x8000, TYPE.ipv4, 0, 0), innerV4(marker))), [L4, 4]),
  late('UDP in GRE', (marker) => overV4(47, join(be16(0, TYPE.ipv4), innerV4(marker))), [L4 + 4 + IPV4, 6]),
];

/** Whose checksum is there. */
export const COMPLETE = (marker: Uint8Array): Uint8Array => overV4(17, udp(V4, marker));
