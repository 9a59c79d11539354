import { FLAG } from './message.codec.ts';
import { linksOf } from './links.ts';
import { openMonitor } from './monitor.ts';
import { NetlinkError } from './netlink-error.ts';
import { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';
import type { RouteSocket } from './route-socket.port.ts';
import { ADDRESSES, NEIGHBOURS, NEXTHOPS, ROUTES, RULES } from './subjects.ts';
import {
  decodeFilter,
  decodeQdisc,
  encodeClsact,
  encodeFilterDelete,
  encodeFilterDump,
  encodeQdiscDump,
  FILTER_MESSAGE,
  QDISC_MESSAGE,
} from './traffic-control.codec.ts';
import { verbsOf } from './verbs.ts';

export interface RouteSocketOptions {
  /** An open fd of the namespace; absent: the process's own. Needed only during the call. */
  readonly netnsFd?: number;
  /** Room for replies; default 8 MiB. */
  readonly receiveBufferBytes?: number;
}

const trafficControlOf = (socket: NetlinkSocket): RouteSocket['trafficControl'] => ({
  qdiscs: (link) =>
    socket.dump(
      { type: QDISC_MESSAGE.get, flags: 0, body: encodeQdiscDump(), what: `list qdiscs of link ${link}` },
      ({ body }) => {
        const qdisc = decodeQdisc(body);
        return qdisc.link === link ? qdisc : undefined;
      },
    ),
  ensureClsact: async (link) => {
    const request = {
      type: QDISC_MESSAGE.new,
      flags: FLAG.create | FLAG.excl,
      body: encodeClsact(link),
      what: `add clsact to link ${link}`,
    };
    await socket.request(request).catch((error: unknown) => {
      if (!(error instanceof NetlinkError && error.code === 'EEXIST')) throw error;
    });
  },
  deleteClsact: async (link) => {
    await socket.request({
      type: QDISC_MESSAGE.delete,
      flags: 0,
      body: encodeClsact(link),
      what: `delete clsact of link ${link}`,
    });
  },
  filters: (link, direction) =>
    socket.dump(
      {
        type: FILTER_MESSAGE.get,
        flags: 0,
        body: encodeFilterDump(link, direction),
        what: `list ${direction} filters of link ${link}`,
      },
      ({ body }) => decodeFilter(body),
    ),
  deleteFilter: async (filter) => {
    const what = `delete ${filter.direction} filter ${filter.handle} of link ${filter.link}`;
    await socket.request({ type: FILTER_MESSAGE.delete, flags: 0, body: encodeFilterDelete(filter), what });
  },
});

/** rtnetlink in one namespace. @throws Error with `code` when the socket cannot be opened */
export const createRouteSocket = (options: RouteSocketOptions = {}): RouteSocket => {
  const socket = new NetlinkSocket({
    protocol: PROTOCOL.route,
    ...(options.netnsFd !== undefined && { netnsFd: options.netnsFd }),
    ...(options.receiveBufferBytes !== undefined && { bufferBytes: options.receiveBufferBytes }),
  });
  return {
    links: linksOf(socket),
    addresses: verbsOf(socket, ADDRESSES),
    routes: verbsOf(socket, ROUTES),
    nexthops: verbsOf(socket, NEXTHOPS),
    rules: verbsOf(socket, RULES),
    neighbours: verbsOf(socket, NEIGHBOURS),
    trafficControl: trafficControlOf(socket),
    monitor: (groups, handlers, monitorOptions = {}) =>
      socket.withNetns((netnsFd) => openMonitor(groups, handlers, { netnsFd, ...monitorOptions })),
    close: () => socket.close(),
    [Symbol.asyncDispose]: async () => socket.close(),
  };
};
