import { type Attribute, MessageWriter, readAttributes } from './attribute.codec.ts';
import { addressBytes, addressText, AF, afOf, familyOf } from './address.codec.ts';
import { readEncap, writeEncap } from './encap.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import type { Nexthop, NexthopMember, NexthopSpec, ResilientGroup } from './model/route.ts';
import { checkWeight } from './route.codec.ts';

/** RTM_* and NHA_* (linux/nexthop.h). */
export const NEXTHOP_MESSAGE = { new: 104, delete: 105, get: 106 } as const;
const NHA = {
  id: 1,
  group: 2,
  groupType: 3,
  blackhole: 4,
  oif: 5,
  gateway: 6,
  encapType: 7,
  encap: 8,
  groups: 9,
  fdb: 11,
  resilient: 12,
} as const;
const ENCAP = { type: NHA.encapType, data: NHA.encap } as const;
const RESILIENT = { buckets: 1, idleTimer: 2, unbalancedTimer: 3 } as const;
const RESILIENT_TYPE = 1; // NEXTHOP_GRP_TYPE_RES
const ONLINK = 4;
const NHMSG_BYTES = 8;
const MEMBER_BYTES = 8;
const TICKS_PER_SECOND = 100; // USER_HZ, the unit of the timers
const STATIC = 4;

/** struct nhmsg: u8 family, scope (must be 0 in requests), protocol, reserved; u32 flags. */
const header = (family: number, protocol: number, flags: number): MessageWriter =>
  new MessageWriter(64).u8(family).u8(0).u8(protocol).u8(0).u32(flags);

/** struct nexthop_grp: u32 id, u8 weight - 1, 3 bytes reserved. */
const groupBytes = (members: readonly NexthopMember[]): Uint8Array => {
  const writer = new MessageWriter(members.length * MEMBER_BYTES);
  for (const { id, weight } of members)
    writer
      .u32(id)
      .u8(checkWeight(weight ?? 1) - 1)
      .zeros(3);
  return writer.bytes();
};

const writeResilient = (writer: MessageWriter, group: ResilientGroup): void => {
  writer.attributeU16(NHA.groupType, RESILIENT_TYPE);
  writer.nest(NHA.resilient, () => {
    writer.attributeU16(RESILIENT.buckets, group.buckets);
    if (group.idleTimer !== undefined) writer.attributeU32(RESILIENT.idleTimer, group.idleTimer * TICKS_PER_SECOND);
    if (group.unbalancedTimer !== undefined) {
      writer.attributeU32(RESILIENT.unbalancedTimer, group.unbalancedTimer * TICKS_PER_SECOND);
    }
  });
};

export const encodeNexthop = (nexthop: NexthopSpec): Uint8Array => {
  const gateway = nexthop.gateway === undefined ? undefined : addressBytes(nexthop.gateway);
  const family = nexthop.group ? AF.unspecified : gateway ? familyOf(gateway) : afOf(nexthop.family ?? 4);
  const writer = header(family, nexthop.protocol ?? STATIC, nexthop.onlink ? ONLINK : 0).attributeU32(
    NHA.id,
    nexthop.id,
  );
  if (nexthop.group) writer.attribute(NHA.group, groupBytes(nexthop.group));
  if (nexthop.resilient) writeResilient(writer, nexthop.resilient);
  if (nexthop.blackhole) writer.flag(NHA.blackhole);
  if (nexthop.fdb) writer.flag(NHA.fdb);
  if (gateway) writer.attribute(NHA.gateway, gateway);
  if (nexthop.link !== undefined) writer.attributeU32(NHA.oif, nexthop.link);
  if (nexthop.encap) writeEncap(writer, nexthop.encap, ENCAP);
  return writer.bytes();
};

/** The id is all that a deletion may say. */
export const encodeNexthopDelete = ({ id }: NexthopSpec): Uint8Array =>
  header(0, 0, 0).attributeU32(NHA.id, id).bytes();

export const encodeNexthopDump = (filter: { readonly groupsOnly?: boolean; readonly link?: number }): Uint8Array => {
  const writer = header(0, 0, 0);
  if (filter.groupsOnly) writer.flag(NHA.groups);
  if (filter.link !== undefined) writer.attributeU32(NHA.oif, filter.link);
  return writer.bytes();
};

const readGroup = (bytes: Uint8Array): NexthopMember[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  return Array.from({ length: Math.floor(bytes.length / MEMBER_BYTES) }, (_, index) => ({
    id: view.getUint32(index * MEMBER_BYTES, true),
    weight: view.getUint8(index * MEMBER_BYTES + 4) + 1,
  }));
};

const readResilient = (attribute: Attribute): ResilientGroup => {
  const fields = attribute.nested();
  return {
    buckets: fields.get(RESILIENT.buckets)?.u16 ?? 0,
    idleTimer: (fields.get(RESILIENT.idleTimer)?.u32 ?? 0) / TICKS_PER_SECOND,
    unbalancedTimer: (fields.get(RESILIENT.unbalancedTimer)?.u32 ?? 0) / TICKS_PER_SECOND,
  };
};

const familyField = (family: number): { family?: 4 | 6 } =>
  family === AF.inet ? { family: 4 } : family === AF.inet6 ? { family: 6 } : {};

/** One RTM_NEWNEXTHOP or RTM_DELNEXTHOP. @throws NetlinkDecodeError */
export const decodeNexthop = (body: Uint8Array): Nexthop => {
  if (body.length < NHMSG_BYTES) {
    throw new NetlinkDecodeError(`nexthop message of ${body.length} bytes: struct nhmsg alone has ${NHMSG_BYTES}`);
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const attributes = readAttributes(body.subarray(NHMSG_BYTES));
  const flags = view.getUint32(4, true);
  const [link, gateway, group] = [attributes.get(NHA.oif), attributes.get(NHA.gateway), attributes.get(NHA.group)];
  const [encapType, encap, resilient] = [
    attributes.get(NHA.encapType),
    attributes.get(NHA.encap),
    attributes.get(NHA.resilient),
  ];
  const isResilient = attributes.get(NHA.groupType)?.u16 === RESILIENT_TYPE;
  return {
    id: attributes.get(NHA.id)?.u32 ?? 0,
    protocol: view.getUint8(2),
    flags: flags & 0xff,
    ...familyField(view.getUint8(0)),
    ...(link && { link: link.u32 }),
    ...(gateway && { gateway: addressText(gateway.bytes) }),
    ...((flags & ONLINK) !== 0 && { onlink: true }),
    ...(attributes.has(NHA.blackhole) && { blackhole: true }),
    ...(attributes.has(NHA.fdb) && { fdb: true }),
    ...(encapType && encap && { encap: readEncap(encapType, encap) }),
    ...(group && { group: readGroup(group.bytes) }),
    ...(isResilient && resilient && { resilient: readResilient(resilient) }),
  };
};
