import { addressToBytes, macBytes, parseAddress } from '@unbounded/ip';
import { checksum, type Flow, ip } from './packets.ts';

/** Frames of a stretched network for the tests of its programs, byte by byte. */

export const bytesOf = (address: string): number[] => [...addressToBytes(parseAddress(address))];
const words = (...values: readonly number[]): number[] => values.flatMap((value) => [value >> 8, value & 0xff]);

export const TYPE = { ipv4: 0x0800, arp: 0x0806, rarp: 0x8035, ipv6: 0x86dd, vlan: 0x8100, provider: 0x88a8 } as const;
export const BROADCAST = 'ff:ff:ff:ff:ff:ff';
export const NOBODY = '00:00:00:00:00:00';

export interface Ethernet {
  readonly from: string;
  readonly to: string;
}

export const ethernet = ({ from, to }: Ethernet, type: number, payload: Iterable<number>): Uint8Array =>
  Uint8Array.from([...macBytes(to), ...macBytes(from), ...words(type), ...payload]);

/** UDP of a flow. */
export const packet = (macs: Ethernet, flow: Flow): Uint8Array =>
  ethernet(macs, flow.destination.includes(':') ? TYPE.ipv6 : TYPE.ipv4, ip(flow));

export interface Arp {
  readonly operation: number;
  readonly senderMac: string;
  readonly sender: string;
  readonly targetMac?: string;
  readonly target: string;
}

export const arpBytes = ({ operation, senderMac, sender, targetMac = NOBODY, target }: Arp): number[] => [
  ...words(1, TYPE.ipv4, 0x0604, operation),
  ...[...macBytes(senderMac), ...bytesOf(sender)],
  ...[...macBytes(targetMac), ...bytesOf(target)],
];

export const arp = (macs: Ethernet, message: Arp, type: number = TYPE.arp): Uint8Array =>
  ethernet(macs, type, arpBytes(message));

const ICMPV6 = 58;

export interface Icmpv6 {
  readonly source: string;
  readonly destination: string;
  /** Type, code, room for the checksum, and the rest. */
  readonly message: readonly number[];
  readonly hopLimit?: number;
  /** Headers before it, as they stand, and the number of the first. */
  readonly extensions?: { readonly first: number; readonly bytes: readonly number[] };
}

/** With its checksum. */
export const icmpv6 = (macs: Ethernet, given: Icmpv6): Uint8Array => {
  const { source, destination, hopLimit = 255, extensions } = given;
  const message = Uint8Array.from(given.message);
  const addresses = [...bytesOf(source), ...bytesOf(destination)];
  const sum = checksum(Uint8Array.from([...addresses, ...words(0, message.length, 0, ICMPV6)]), message);
  message.set(words(sum), 2);
  const before = extensions?.bytes ?? [];
  return ethernet(macs, TYPE.ipv6, [
    ...[0x60, 0, 0, 0, ...words(before.length + message.length), extensions?.first ?? ICMPV6, hopLimit],
    ...[...addresses, ...before, ...message],
  ]);
};

/** Option of neighbor discovery: 1 the source's MAC, 2 the target's. */
export const macOption = (type: 1 | 2, mac: string): number[] => [type, 1, ...macBytes(mac)];
export const solicitation = (target: string, options: readonly number[] = []): number[] => [
  ...[135, 0, 0, 0, 0, 0, 0, 0],
  ...[...bytesOf(target), ...options],
];
export const advertisement = (target: string, flags: number, options: readonly number[] = []): number[] => [
  ...[136, 0, 0, 0, flags, 0, 0, 0],
  ...[...bytesOf(target), ...options],
];

/** ff02::1:ffXX:XXXX and its MAC. */
export const solicitedNode = (target: string): { readonly address: string; readonly mac: string } => {
  const [a = 0, b = 0, c = 0] = bytesOf(target).slice(13);
  const hex = (byte: number): string => byte.toString(16).padStart(2, '0');
  return { address: `ff02::1:ff${hex(a)}:${hex(b)}${hex(c)}`, mac: `33:33:ff:${hex(a)}:${hex(b)}:${hex(c)}` };
};

export interface Outer {
  readonly mac: string;
  readonly source: string;
  readonly destination: string;
  readonly flowLabel?: number;
  readonly nextHeader?: number;
  readonly hopLimit?: number;
  readonly length?: number;
}

/** A frame in SRv6. */
export const outer = (given: Outer, inner: Uint8Array): Uint8Array => {
  const { mac, source, destination, flowLabel = 0, nextHeader = 143, hopLimit = 64, length = inner.length } = given;
  return ethernet({ from: mac, to: mac }, TYPE.ipv6, [
    ...[0x60, flowLabel >> 16, (flowLabel >> 8) & 0xff, flowLabel & 0xff],
    ...[...words(length), nextHeader, hopLimit, ...bytesOf(source), ...bytesOf(destination), ...inner],
  ]);
};

/** Of a frame in SRv6. */
export const flowLabelOf = (bytes: Uint8Array): number => ((bytes[15]! & 0xf) << 16) | (bytes[16]! << 8) | bytes[17]!;

/** Locator, function, number of the network, zeros. */
export const sid = (locator: string, functionNumber: 1 | 2, network: number): string => {
  const hex = (value: number): string => value.toString(16);
  return `${locator.replace(/::$/, '')}:${hex(functionNumber)}:${hex(network >>> 16)}:${hex(network & 0xffff)}:0`;
};
