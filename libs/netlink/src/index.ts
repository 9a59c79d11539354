export { addressBytes, addressText, macBytes, macText } from './address.codec.ts';
export {
  type Attribute,
  type Attributes,
  MessageWriter,
  readAttributeList,
  readAttributes,
} from './attribute.codec.ts';
export {
  createGenericSocket,
  GENERIC_HEADER_BYTES,
  type GenericFamily,
  type GenericRequest,
  type GenericSocket,
  readGenericAttributes,
} from './generic-socket.ts';
export { FLAG, type Message, NetlinkDecodeError, type Request } from './message.codec.ts';
export type * from './model/link.ts';
export * from './model/route.ts';
export type * from './model/traffic-control.ts';
export { isAbsent, NetlinkError } from './netlink-error.ts';
export { NetlinkSocket, type NetlinkSocketOptions, PROTOCOL } from './netlink-socket.ts';
export { createNetns, createTun, type Netns, openNetns } from './netns.ts';
export { openPathSocket, type PathAddress, type PathDatagram, type PathSocket } from './path-socket.ts';
export { createRouteSocket, type RouteSocketOptions } from './route-socket.ts';
export type * from './route-socket.port.ts';
export { openUdp, type UdpOptions } from './udp.ts';
