import { addressToBytes, macBytes, parseAddress } from '@unbounded/ip';

/** Frames of ARP (RFC 826) and neighbor discovery (RFC 4861) as anybody on a LAN can send them. */

export const SENDER_MAC = '02:00:00:00:00:99';
const bytesOf = (address: string): number[] => [...addressToBytes(parseAddress(address))];
const be16 = (number: number): number[] => [number >> 8, number & 0xff];

/** @param vlan the tag, with a VLAN of 0 for priority alone */
const frame = (to: string, etherType: number, payload: readonly number[], vlan?: number): string => {
  const tag = vlan === undefined ? [] : [...be16(0x8100), ...be16(vlan)];
  return Buffer.from([...macBytes(to), ...macBytes(SENDER_MAC), ...tag, ...be16(etherType), ...payload]).toString(
    'hex',
  );
};

export interface Arp {
  readonly to: string;
  readonly operation: 'request' | 'reply';
  readonly sender: string;
  readonly target: string;
  readonly vlan?: number;
}
export const arpFrame = ({ to, operation, sender, target, vlan }: Arp): string => {
  const head = [...be16(1), ...be16(0x0800), 6, 4, ...be16(operation === 'request' ? 1 : 2)];
  const targetMac = operation === 'request' ? [0, 0, 0, 0, 0, 0] : macBytes(to);
  return frame(
    to,
    0x0806,
    [...head, ...macBytes(SENDER_MAC), ...bytesOf(sender), ...targetMac, ...bytesOf(target)],
    vlan,
  );
};

export interface Discovery {
  readonly to: string;
  readonly type: 133 | 135 | 136;
  readonly source: string;
  readonly destination: string;
  /** Of solicitations and advertisements of neighbors. */
  readonly target?: string;
  readonly vlan?: number;
}
export const discoveryFrame = ({ to, type, source, destination, target, vlan }: Discovery): string => {
  const option = [type === 136 ? 2 : 1, 1, ...macBytes(SENDER_MAC)]; // the link-layer address
  const flags = type === 136 ? [0x60, 0, 0, 0] : [0, 0, 0, 0]; // solicited, override
  const body = [...flags, ...(target === undefined ? [] : bytesOf(target)), ...option];
  const addresses = [...bytesOf(source), ...bytesOf(destination)];
  const words = [...addresses, 0, 0, ...be16(4 + body.length), 0, 0, 0, 58, type, 0, 0, 0, ...body];
  let sum = 0;
  for (let at = 0; at < words.length; at += 2) sum += (words[at]! << 8) + words[at + 1]!;
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  const message = [type, 0, ...be16(~sum & 0xffff), ...body];
  return frame(to, 0x86dd, [0x60, 0, 0, 0, ...be16(message.length), 58, 255, ...addresses, ...message], vlan);
};
