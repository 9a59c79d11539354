import { type Attribute, MessageWriter } from './attribute.codec.ts';
import { addressBytes, addressText } from './address.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import type { Encap, IpEncap, Seg6Encap } from './model/route.ts';

/** Lightweight tunnels: LWTUNNEL_ENCAP_*, LWTUNNEL_IP_* (linux/lwtunnel.h), SEG6_IPTUNNEL_SRH (linux/seg6_iptunnel.h). */
const CODE = { ip: 2, ip6: 4, seg6: 5 } as const;
const IP = { id: 1, dst: 2, src: 3, ttl: 4, tos: 5 } as const;
const SEG6_SRH = 1;
const SEG6_MODES = ['inline', 'encap', 'l2encap', 'encap.red', 'l2encap.red'] as const;
/** i32 mode, then the routing header (RFC 8754): next, length, type 4, segments left, last entry, flags, u16 tag. */
const [MODE_BYTES, SRH_BYTES, ROUTING_TYPE] = [4, 8, 4];

const segmentsToBytes = ({ mode, segments }: Seg6Encap): Uint8Array => {
  if (segments.length === 0) throw new RangeError('an SRv6 encapsulation needs at least one segment');
  // Inline keeps the packet's own destination as the last segment; the kernel fills it into the empty first entry.
  const count = segments.length + (mode === 'inline' ? 1 : 0);
  const bytes = new Uint8Array(MODE_BYTES + SRH_BYTES + 16 * count);
  new DataView(bytes.buffer).setInt32(0, SEG6_MODES.indexOf(mode), true);
  bytes.set([0, count * 2, ROUTING_TYPE, count - 1, count - 1, 0, 0, 0], MODE_BYTES);
  for (const [index, segment] of segments.entries()) {
    const address = addressBytes(segment);
    if (address.length !== 16) throw new RangeError(`segment "${segment}" must be an IPv6 address`);
    bytes.set(address, MODE_BYTES + SRH_BYTES + 16 * (count - 1 - index)); // the last to visit stands first
  }
  return bytes;
};

const segmentsFromBytes = (bytes: Uint8Array): Seg6Encap => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const mode = bytes.length >= MODE_BYTES + SRH_BYTES ? SEG6_MODES[view.getInt32(0, true)] : undefined;
  const count = mode === undefined ? 0 : view.getUint8(MODE_BYTES + 4) + 1;
  if (mode === undefined || bytes.length < MODE_BYTES + SRH_BYTES + 16 * count) {
    throw new NetlinkDecodeError(`SRv6 encapsulation of ${bytes.length} bytes: too short, or of an unknown mode`);
  }
  const segments: string[] = [];
  for (let index = count - 1; index >= (mode === 'inline' ? 1 : 0); index--) {
    const at = MODE_BYTES + SRH_BYTES + 16 * index;
    segments.push(addressText(bytes.subarray(at, at + 16)));
  }
  return { type: 'seg6', mode, segments };
};

const writeIp = (writer: MessageWriter, encap: IpEncap): void => {
  writer.attributeBe64(IP.id, BigInt(encap.id)).attribute(IP.dst, addressBytes(encap.dst));
  if (encap.src !== undefined) writer.attribute(IP.src, addressBytes(encap.src));
  if (encap.ttl !== undefined) writer.attributeU8(IP.ttl, encap.ttl);
  if (encap.tos !== undefined) writer.attributeU8(IP.tos, encap.tos);
};

/** Writes the pair of attributes that routes (RTA_ENCAP_TYPE, RTA_ENCAP) and nexthops number differently. */
export const writeEncap = (
  writer: MessageWriter,
  encap: Encap,
  types: { readonly type: number; readonly data: number },
): void => {
  if (encap.type === 'other')
    throw new RangeError(`encapsulation type ${encap.code} cannot be written: ip, ip6 and seg6 can`);
  writer.attributeU16(types.type, CODE[encap.type]);
  writer.nest(types.data, () => {
    if (encap.type === 'seg6') writer.attribute(SEG6_SRH, segmentsToBytes(encap));
    else writeIp(writer, encap);
  });
};

const isSet = (attribute: Attribute | undefined): attribute is Attribute =>
  attribute !== undefined && attribute.bytes.some((byte) => byte !== 0);

/** @throws NetlinkDecodeError */
export const readEncap = (type: Attribute, data: Attribute): Encap => {
  const code = type.u16;
  const fields = data.nested();
  if (code === CODE.seg6) return segmentsFromBytes(fields.get(SEG6_SRH)?.bytes ?? new Uint8Array(0));
  const dst = fields.get(IP.dst);
  if ((code !== CODE.ip && code !== CODE.ip6) || !dst) return { type: 'other', code };
  const [src, ttl, tos] = [fields.get(IP.src), fields.get(IP.ttl), fields.get(IP.tos)];
  return {
    type: code === CODE.ip ? 'ip' : 'ip6',
    id: Number(fields.get(IP.id)?.be64 ?? 0n),
    dst: addressText(dst.bytes),
    ...(isSet(src) && { src: addressText(src.bytes) }),
    ...(isSet(ttl) && { ttl: ttl.u8 }),
    ...(isSet(tos) && { tos: tos.u8 }),
  };
};
