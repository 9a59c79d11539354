import { type Attributes, MessageWriter, readAttributes } from './attribute.codec.ts';
import { addressBytes, addressText, afOf, AF, familyOf, ipFamily, prefixBytes } from './address.codec.ts';
import { readEncap, writeEncap } from './encap.codec.ts';
import { NetlinkDecodeError } from './message.codec.ts';
import {
  type IpFamily,
  type Route,
  ROUTE_SCOPES,
  ROUTE_TABLES,
  ROUTE_TYPES,
  type RouteHop,
  type RouteScope,
  type RouteSpec,
} from './model/route.ts';
import { scopeName } from './route-scope.codec.ts';

/** RTM_* and RTA_* of linux/rtnetlink.h. */
export const ROUTE_MESSAGE = { new: 24, delete: 25, get: 26 } as const;
const RTA = {
  dst: 1,
  oif: 4,
  gateway: 5,
  priority: 6,
  prefSrc: 7,
  metrics: 8,
  multipath: 9,
  table: 15,
  via: 18,
  encapType: 21,
  encap: 22,
  nexthopId: 30,
} as const;
const ENCAP = { type: RTA.encapType, data: RTA.encap } as const;
const METRIC = { mtu: 2, advmss: 8 } as const; // RTAX_*
const ONLINK = 4; // RTNH_F_ONLINK
const RTMSG_BYTES = 12;
const RTNEXTHOP_BYTES = 8;
const STATIC = 4;
const IN_ATTRIBUTE = 0; // RT_TABLE_UNSPEC: the table is in RTA_TABLE

/** struct rtmsg: u8 family, dst length, src length, tos, table, protocol, scope, type; u32 flags. */
const header = (writer: MessageWriter, fields: readonly number[], flags: number): MessageWriter => {
  for (const field of fields) writer.u8(field);
  return writer.u32(flags);
};

const writeTable = (writer: MessageWriter, table: number): void => {
  if (table > 255) writer.attributeU32(RTA.table, table);
};
const tableByte = (table: number): number => (table > 255 ? IN_ATTRIBUTE : table);

/** As iproute2 does: a route that names no way beyond the link is of scope link. */
const defaultScope = (route: RouteSpec, family: number): RouteScope => {
  if (family === AF.inet6) return 'global';
  if (route.type === 'local') return 'host';
  const plain = route.type === undefined || route.type === 'unicast';
  const beyond = route.gateway !== undefined || route.nexthops !== undefined || route.nexthopId !== undefined;
  return plain && !beyond ? 'link' : 'global';
};

const writeGateway = (writer: MessageWriter, gateway: string, family: number): void => {
  const bytes = addressBytes(gateway);
  const via = familyOf(bytes);
  if (via === family) writer.attribute(RTA.gateway, bytes);
  else writer.attribute(RTA.via, Uint8Array.of(via, 0, ...bytes)); // struct rtvia: u16 family in host order, address
};

/** struct rtnexthop: u16 length, u8 flags, u8 weight - 1, i32 link; then attributes. */
const hopBytes = (hop: RouteHop, family: number): Uint8Array => {
  const attributes = new MessageWriter(64);
  if (hop.gateway !== undefined) writeGateway(attributes, hop.gateway, family);
  if (hop.encap) writeEncap(attributes, hop.encap, ENCAP);
  const size = RTNEXTHOP_BYTES + attributes.length;
  const weight = checkWeight(hop.weight ?? 1);
  return new MessageWriter(size)
    .u16(size)
    .u8(hop.onlink ? ONLINK : 0)
    .u8(weight - 1)
    .u32(hop.link ?? 0)
    .raw(attributes.bytes())
    .bytes();
};

export const checkWeight = (weight: number): number => {
  if (Number.isInteger(weight) && weight >= 1 && weight <= 256) return weight;
  throw new RangeError(`weight ${weight} must be an integer within 1..256`);
};

const writeWay = (writer: MessageWriter, route: RouteSpec, family: number): void => {
  if (route.nexthopId !== undefined) writer.attributeU32(RTA.nexthopId, route.nexthopId);
  if (route.gateway !== undefined) writeGateway(writer, route.gateway, family);
  if (route.link !== undefined) writer.attributeU32(RTA.oif, route.link);
  if (route.encap) writeEncap(writer, route.encap, ENCAP);
  if (!route.nexthops) return;
  const hops = new MessageWriter();
  for (const hop of route.nexthops) hops.raw(hopBytes(hop, family));
  writer.attribute(RTA.multipath, hops.bytes());
};

const writeBody = (
  writer: MessageWriter,
  route: RouteSpec,
  dst: { readonly bytes: Uint8Array; readonly length: number },
): Uint8Array => {
  const family = familyOf(dst.bytes);
  if (dst.length > 0) writer.attribute(RTA.dst, dst.bytes);
  writeTable(writer, route.table ?? ROUTE_TABLES.main);
  if (route.metric !== undefined) writer.attributeU32(RTA.priority, route.metric);
  if (route.prefSrc !== undefined) writer.attribute(RTA.prefSrc, addressBytes(route.prefSrc));
  const { mtu, advmss } = route;
  if (mtu !== undefined || advmss !== undefined) {
    writer.nest(
      RTA.metrics,
      () => {
        if (mtu !== undefined) writer.attributeU32(METRIC.mtu, mtu);
        if (advmss !== undefined) writer.attributeU32(METRIC.advmss, advmss);
      },
      false,
    );
  }
  writeWay(writer, route, family);
  return writer.bytes();
};

/** To create or replace. */
export const encodeRoute = (route: RouteSpec): Uint8Array => {
  const dst = prefixBytes(route.dst);
  const family = familyOf(dst.bytes);
  const scope = ROUTE_SCOPES[route.scope ?? defaultScope(route, family)];
  const type = ROUTE_TYPES.indexOf(route.type ?? 'unicast');
  const fields = [
    family,
    dst.length,
    0,
    0,
    tableByte(route.table ?? ROUTE_TABLES.main),
    route.protocol ?? STATIC,
    scope,
    type,
  ];
  return writeBody(header(new MessageWriter(96), fields, route.onlink ? ONLINK : 0), route, dst);
};

/** To delete: only what is given has to match. */
export const encodeRouteDelete = (route: RouteSpec): Uint8Array => {
  const dst = prefixBytes(route.dst);
  const type = route.type === undefined ? 0 : ROUTE_TYPES.indexOf(route.type);
  const scope = ROUTE_SCOPES[route.scope ?? 'nowhere']; // nowhere: any
  const fields = [
    familyOf(dst.bytes),
    dst.length,
    0,
    0,
    tableByte(route.table ?? ROUTE_TABLES.main),
    route.protocol ?? 0,
    scope,
    type,
  ];
  return writeBody(header(new MessageWriter(96), fields, route.onlink ? ONLINK : 0), route, dst);
};

export const encodeRouteDump = (filter: {
  readonly family?: IpFamily;
  readonly table?: number;
  readonly protocol?: number;
  readonly link?: number;
}): Uint8Array => {
  const writer = header(new MessageWriter(32), [afOf(filter.family), 0, 0, 0, 0, filter.protocol ?? 0, 0, 0], 0);
  if (filter.table !== undefined) writer.attributeU32(RTA.table, filter.table);
  if (filter.link !== undefined) writer.attributeU32(RTA.oif, filter.link);
  return writer.bytes();
};

const readGateway = (attributes: Attributes): string | undefined => {
  const [gateway, via] = [attributes.get(RTA.gateway), attributes.get(RTA.via)];
  if (gateway) return addressText(gateway.bytes);
  return via && via.bytes.length > 2 ? addressText(via.bytes.subarray(2)) : undefined;
};

type Way = Pick<RouteHop, 'link' | 'gateway' | 'onlink' | 'encap'>;

const readWay = (attributes: Attributes, link: number | undefined, flags: number): Way => {
  const gateway = readGateway(attributes);
  const [encapType, encap] = [attributes.get(RTA.encapType), attributes.get(RTA.encap)];
  return {
    ...(link !== undefined && { link }),
    ...(gateway !== undefined && { gateway }),
    ...((flags & ONLINK) !== 0 && { onlink: true }),
    ...(encapType && encap && { encap: readEncap(encapType, encap) }),
  };
};

const readHops = (bytes: Uint8Array): RouteHop[] => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const hops: RouteHop[] = [];
  for (let at = 0; at + RTNEXTHOP_BYTES <= bytes.length;) {
    const length = view.getUint16(at, true);
    if (length < RTNEXTHOP_BYTES || at + length > bytes.length) {
      throw new NetlinkDecodeError(
        `nexthop of ${length} bytes at ${at}: it must have ${RTNEXTHOP_BYTES}..${bytes.length - at}`,
      );
    }
    const attributes = readAttributes(bytes.subarray(at + RTNEXTHOP_BYTES, at + length));
    const way = readWay(attributes, view.getInt32(at + 4, true), view.getUint8(at + 2));
    hops.push({ ...way, weight: view.getUint8(at + 3) + 1 });
    at += (length + 3) & ~3;
  }
  return hops;
};

/** How the packets leave. With a nexthop id the kernel repeats the object's own way; it belongs to the object. */
const readWays = (attributes: Attributes, flags: number): Partial<RouteSpec> => {
  const nexthopId = attributes.get(RTA.nexthopId);
  if (nexthopId) return { nexthopId: nexthopId.u32 };
  const multipath = attributes.get(RTA.multipath);
  if (multipath) return { nexthops: readHops(multipath.bytes) };
  return readWay(attributes, attributes.get(RTA.oif)?.u32, flags);
};

/** One RTM_NEWROUTE or RTM_DELROUTE. @throws NetlinkDecodeError, also for families other than IPv4 and IPv6 */
export const decodeRoute = (body: Uint8Array): Route => {
  if (body.length < RTMSG_BYTES) {
    throw new NetlinkDecodeError(`route message of ${body.length} bytes: struct rtmsg alone has ${RTMSG_BYTES}`);
  }
  const view = new DataView(body.buffer, body.byteOffset, body.length);
  const family = ipFamily(view.getUint8(0));
  const attributes = readAttributes(body.subarray(RTMSG_BYTES));
  const flags = view.getUint32(8, true);
  const dst = attributes.get(RTA.dst);
  const [metric, prefSrc] = [attributes.get(RTA.priority), attributes.get(RTA.prefSrc)];
  const metrics = attributes.get(RTA.metrics)?.nested();
  const [mtu, advmss] = [metrics?.get(METRIC.mtu), metrics?.get(METRIC.advmss)];
  return {
    family,
    dst: `${dst ? addressText(dst.bytes) : family === 4 ? '0.0.0.0' : '::'}/${view.getUint8(1)}`,
    table: attributes.get(RTA.table)?.u32 ?? view.getUint8(4),
    protocol: view.getUint8(5),
    scope: scopeName(view.getUint8(6)),
    type: ROUTE_TYPES[view.getUint8(7)] ?? 'unspecified',
    flags: flags & 0xff,
    ...(metric && { metric: metric.u32 }),
    ...(prefSrc && { prefSrc: addressText(prefSrc.bytes) }),
    ...(mtu && { mtu: mtu.u32 }),
    ...(advmss && { advmss: advmss.u32 }),
    ...readWays(attributes, flags),
  };
};

/** False for the multicast routes (RTNL_FAMILY_IPMR) that an unfiltered dump also brings. */
export const isIpRoute = (body: Uint8Array): boolean => body[0] === AF.inet || body[0] === AF.inet6;
