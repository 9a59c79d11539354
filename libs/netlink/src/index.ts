export { addressBytes, addressText } from './address.codec.ts';
export {
  type Attribute,
  type Attributes,
  MessageWriter,
  readAttributeList,
  readAttributes,
} from './attribute.codec.ts';
export { createEthtool, type Ethtool } from './ethtool.ts';
export { createGenericSocket, type GenericFamily, readGenericAttributes } from './generic-socket.ts';
export { FLAG, type Message, NetlinkDecodeError, type Request } from './message.codec.ts';
export type * from './model/link.ts';
export type * from './model/netconf.ts';
export * from './model/route.ts';
export type * from './model/traffic-control.ts';
export { isAbsent, NetlinkError } from './netlink-error.ts';
export { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';
export { createNetns, type Netns } from './netns.ts';
export { createTun, openTun, type Tun } from './tun.ts';
export { openPacketSocket, type PacketSocket, type PacketSocketOptions } from './packet-socket.ts';
export { openPathSocket, type PathDatagram, type PathSocket } from './path-socket.ts';
export { createRouteSocket } from './route-socket.ts';
export type * from './route-socket.port.ts';
export { openUdp } from './udp.ts';
export { type Conntrack, createConntrack } from './conntrack.ts';
export type { Answers, Connection } from './conntrack.codec.ts';
