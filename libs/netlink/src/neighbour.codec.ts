import { macBytes, macText } from '@unbounded/ip';
import { MessageWriter, readAttributes } from './attribute.codec.ts';
import { addressBytes, addressText, AF, afOf } from './address.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import {
  type IpFamily,
  type Neighbour,
  NEIGHBOUR_STATES,
  type NeighbourSpec,
  type NeighbourState,
} from './model/route.ts';

/** RTM_* and NDA_* (linux/neighbour.h). */
export const NEIGHBOUR_MESSAGE = { new: 28, delete: 29, get: 30 } as const;
const NDA = { dst: 1, mac: 2, vlan: 5, port: 6, vni: 7, ifindex: 8, master: 9, protocol: 12, nexthopId: 13 } as const;
const NTF_SELF = 2;
const NDMSG_BYTES = 12;

const [STATE_NAMES, FAMILIES] = [
  new Map<number, NeighbourState>(
    Object.entries(NEIGHBOUR_STATES).map(([name, code]) => [code, name as NeighbourState]),
  ),
  new Map<number, IpFamily | 'bridge'>([
    [AF.inet, 4],
    [AF.inet6, 6],
    [AF.bridge, 'bridge'],
  ]),
];

/** struct ndmsg: u8 family, 3 bytes pad, i32 link, u16 state, u8 flags, u8 type. */
export const encodeNeighbour = (value: NeighbourSpec): Uint8Array => {
  const flags = value.flags ?? (value.family === 'bridge' ? NTF_SELF : 0);
  const isPermanentFdb = value.family === 'bridge' && (value.state ?? 'permanent') === 'permanent';
  // An FDB entry that stays is "permanent, and never asked for", as iproute2 says it.
  const state = NEIGHBOUR_STATES[value.state ?? 'permanent'] | (isPermanentFdb ? NEIGHBOUR_STATES.noarp : 0);
  const writer = new MessageWriter(64).u8(afOf(value.family)).zeros(3).u32(value.link).u16(state).u8(flags).u8(0);
  if (value.address !== undefined) writer.attribute(NDA.dst, addressBytes(value.address));
  if (value.mac !== undefined) writer.attribute(NDA.mac, macBytes(value.mac));
  if (value.vlan !== undefined) writer.attributeU16(NDA.vlan, value.vlan);
  if (value.port !== undefined) writer.attributeBe16(NDA.port, value.port);
  if (value.vni !== undefined) writer.attributeU32(NDA.vni, value.vni);
  if (value.protocol !== undefined) writer.attributeU8(NDA.protocol, value.protocol);
  if (value.nexthopId !== undefined) writer.attributeU32(NDA.nexthopId, value.nexthopId);
  return writer.bytes();
};

/**
 * ARP and NDP tables are asked for with struct ndmsg. FDBs want struct ifinfomsg (16 bytes, the bridge port or VXLAN
 * device as its index) by long tradition of iproute2; under strict checking struct ndmsg with ndm_ifindex works.
 */
export const encodeNeighbourDump = (filter: {
  readonly family?: IpFamily | 'bridge';
  readonly link?: number;
}): Uint8Array => {
  const isFdb = filter.family === 'bridge';
  const writer = new MessageWriter(32)
    .u8(afOf(filter.family))
    .zeros(3)
    .u32(isFdb ? (filter.link ?? 0) : 0)
    .zeros(4);
  if (!isFdb && filter.link !== undefined) writer.attributeU32(NDA.ifindex, filter.link);
  return writer.bytes();
};

const stateName = (bits: number): NeighbourState =>
  bits & NEIGHBOUR_STATES.permanent ? 'permanent' : (STATE_NAMES.get(bits) ?? 'none');

/** One RTM_NEWNEIGH or RTM_DELNEIGH. @throws NetlinkDecodeError */
export const decodeNeighbour = (body: Uint8Array): Neighbour => {
  if (body.length < NDMSG_BYTES) {
    throw new NetlinkDecodeError(`neighbour message of ${body.length} bytes: struct ndmsg alone has ${NDMSG_BYTES}`);
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const family = FAMILIES.get(view.getUint8(0));
  if (family === undefined)
    throw new NetlinkDecodeError(`neighbour of address family ${view.getUint8(0)}: 2, 7 and 10 are known`);
  const attributes = readAttributes(body.subarray(NDMSG_BYTES));
  const [address, mac, master] = [attributes.get(NDA.dst), attributes.get(NDA.mac), attributes.get(NDA.master)];
  const [vlan, port, vni, protocol, nexthopId] = [
    attributes.get(NDA.vlan),
    attributes.get(NDA.port),
    attributes.get(NDA.vni),
    attributes.get(NDA.protocol),
    attributes.get(NDA.nexthopId),
  ];
  return {
    family,
    link: view.getInt32(4, true),
    state: stateName(view.getUint16(8, true)),
    flags: view.getUint8(10),
    ...(address && { address: addressText(address.bytes) }),
    ...(mac && mac.bytes.length > 0 && { mac: macText(mac.bytes) }),
    ...(vlan && { vlan: vlan.u16 }),
    ...(port && { port: port.be16 }),
    ...(vni && { vni: vni.u32 }),
    ...(protocol && { protocol: protocol.u8 }),
    ...(nexthopId && { nexthopId: nexthopId.u32 }),
    ...(master && { master: master.u32 }),
  };
};

export const isIpOrFdb = (body: Uint8Array): boolean => FAMILIES.has(body[0] ?? 0);
