import { macBytes, macText } from '@unbounded/ip';
import { addressBytes, addressText } from '@unbounded/netlink';

/** ARP of IPv4 over Ethernet (RFC 826), in whole frames. */

export const ETHERTYPE_ARP = 0x0806;
export const ARP = { request: 1, reply: 2 } as const;

export interface ArpPacket {
  /** 1: request, 2: reply; others exist and say nothing here. */
  readonly operation: number;
  readonly senderMac: string;
  readonly senderAddress: string;
  readonly targetMac: string;
  readonly targetAddress: string;
}

const BROADCAST_MAC = 'ff:ff:ff:ff:ff:ff';
const NO_MAC = '00:00:00:00:00:00';
export const NO_ADDRESS = '0.0.0.0';

const AT = { header: 14, operation: 20, senderMac: 22, senderAddress: 28, targetMac: 32, targetAddress: 38 } as const;
const FRAME_BYTES = 42;
/** Hardware type Ethernet, protocol IPv4, their lengths. */
const ETHERNET_OF_IPV4 = [0, 1, 0x08, 0, 6, 4] as const;

/** To everybody on the LAN, from the MAC of the packet's sender. */
export const encodeArp = (packet: ArpPacket): Uint8Array => {
  const frame = new Uint8Array(FRAME_BYTES);
  const view = new DataView(frame.buffer);
  frame.set(macBytes(BROADCAST_MAC));
  frame.set(macBytes(packet.senderMac), 6);
  view.setUint16(12, ETHERTYPE_ARP);
  frame.set(ETHERNET_OF_IPV4, AT.header);
  view.setUint16(AT.operation, packet.operation);
  frame.set(macBytes(packet.senderMac), AT.senderMac);
  frame.set(v4Bytes('senderAddress', packet.senderAddress), AT.senderAddress);
  frame.set(macBytes(packet.targetMac), AT.targetMac);
  frame.set(v4Bytes('targetAddress', packet.targetAddress), AT.targetAddress);
  return frame;
};

const v4Bytes = (field: string, address: string): Uint8Array => {
  const bytes = addressBytes(address);
  if (bytes.length !== 4) throw new RangeError(`${field} is ${address}: it must be an IPv4 address`);
  return bytes;
};

/** undefined for what is no whole ARP packet of IPv4 over Ethernet; bytes behind it are padding. */
export const decodeArp = (frame: Uint8Array): ArpPacket | undefined => {
  if (frame.length < FRAME_BYTES) return undefined;
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  if (view.getUint16(12) !== ETHERTYPE_ARP) return undefined;
  if (ETHERNET_OF_IPV4.some((byte, at) => frame[AT.header + at] !== byte)) return undefined;
  const macAt = (at: number): string => macText(frame.subarray(at, at + 6));
  const addressAt = (at: number): string => addressText(frame.subarray(at, at + 4));
  return {
    operation: view.getUint16(AT.operation),
    senderMac: macAt(AT.senderMac),
    senderAddress: addressAt(AT.senderAddress),
    targetMac: macAt(AT.targetMac),
    targetAddress: addressAt(AT.targetAddress),
  };
};

/** "Who has it?" that changes nobody's table (RFC 5227, 2.1.1): its sender claims no address. */
export const arpProbe = (address: string, mac: string): Uint8Array =>
  encodeArp({
    operation: ARP.request,
    senderMac: mac,
    senderAddress: NO_ADDRESS,
    targetMac: NO_MAC,
    targetAddress: address,
  });

/**
 * "It is here" in both forms. RFC 5227, 3 has the request; some devices heed replies alone, and those of Linux only when they name the
 * sender's MAC as the target's too.
 */
export const arpAnnouncements = (address: string, mac: string): Uint8Array[] => {
  const sender = { senderMac: mac, senderAddress: address, targetAddress: address };
  return [
    encodeArp({ ...sender, operation: ARP.request, targetMac: NO_MAC }),
    encodeArp({ ...sender, operation: ARP.reply, targetMac: mac }),
  ];
};
