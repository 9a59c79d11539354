export type * from './model/link.ts';
export * from './model/route.ts';
export type * from './model/traffic-control.ts';
export { isAbsent, NetlinkError } from './netlink-error.ts';
export type * from './route-socket.port.ts';
