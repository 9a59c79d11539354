import { ADDRESS_MESSAGE } from './link-address.codec.ts';
import { decodeLink, LINK_MESSAGE } from './link.codec.ts';
import type { Message } from './message.codec.ts';
import { decodeNetconf, isIpNetconf, NETCONF_MESSAGE } from './netconf.codec.ts';
import { NEIGHBOUR_MESSAGE } from './neighbour.codec.ts';
import { NetlinkSocket, PROTOCOL } from './netlink-socket.ts';
import { NEXTHOP_MESSAGE } from './nexthop.codec.ts';
import { ROUTE_MESSAGE } from './route.codec.ts';
import type { Monitor, MonitorGroup, MonitorHandlers, RouteEvent } from './route-socket.port.ts';
import { RULE_MESSAGE } from './rule.codec.ts';
import { ADDRESSES, NEIGHBOURS, NEXTHOPS, ROUTES, RULES } from './subjects.ts';

/** RTNLGRP_* (linux/rtnetlink.h). */
const GROUPS: Readonly<Record<MonitorGroup, readonly number[]>> = {
  link: [1],
  neighbour: [3],
  address: [5, 9],
  route: [7, 11],
  rule: [8, 19],
  nexthop: [32],
  netconf: [24, 25],
};

const AF_BRIDGE = 7;

type Decoder = (body: Uint8Array) => RouteEvent['value'] | undefined;

/** Link messages of AF_BRIDGE are about ports, with other attributes. */
const decodePlainLink: Decoder = (body) => (body[0] === AF_BRIDGE ? undefined : decodeLink(body));

const SUBJECTS: readonly (readonly [
  subject: MonitorGroup,
  messages: { new: number; delete: number },
  decode: Decoder,
])[] = [
  ['link', LINK_MESSAGE, decodePlainLink],
  ['address', ADDRESS_MESSAGE, ADDRESSES.decode],
  ['route', ROUTE_MESSAGE, ROUTES.decode],
  ['nexthop', NEXTHOP_MESSAGE, NEXTHOPS.decode],
  ['rule', RULE_MESSAGE, RULES.decode],
  ['neighbour', NEIGHBOUR_MESSAGE, NEIGHBOURS.decode],
  ['netconf', NETCONF_MESSAGE, (body) => (isIpNetconf(body) ? decodeNetconf(body) : undefined)],
];

type EventDecoder = (message: Pick<Message, 'body' | 'port'>) => RouteEvent | undefined;

const DECODERS = new Map<number, EventDecoder>(
  SUBJECTS.flatMap(([subject, messages, decode]) =>
    (['new', 'delete'] as const).map((verb): [number, EventDecoder] => [
      messages[verb],
      ({ body, port }) => {
        const value = decode(body);
        return value && ({ subject, change: verb === 'new' ? 'new' : 'deleted', value, port } as RouteEvent);
      },
    ]),
  ),
);

/** The event that a multicast message tells; undefined for one of a kind that is not ours. @throws NetlinkDecodeError */
export const decodeEvent = (message: Pick<Message, 'type' | 'body' | 'port'>): RouteEvent | undefined =>
  DECODERS.get(message.type)?.(message);

export interface MonitorOptions {
  /** An own socket is opened in this namespace, so that an overflow of events loses no reply. */
  readonly netnsFd: number;
  readonly receiveBufferBytes?: number;
}

export const openMonitor = (
  groups: readonly MonitorGroup[],
  handlers: MonitorHandlers,
  options: MonitorOptions,
): Monitor => {
  const socket = new NetlinkSocket({
    protocol: PROTOCOL.route,
    netnsFd: options.netnsFd,
    ...(options.receiveBufferBytes !== undefined && { bufferBytes: options.receiveBufferBytes }),
    onEvent: (message) => {
      const event = decodeEvent(message);
      if (event) handlers.onEvent(event);
    },
    onOverflow: () => handlers.onResync(),
    ...(handlers.onError && { onError: (error: Error) => handlers.onError?.(error) }),
  });
  for (const group of groups) for (const number of GROUPS[group]) socket.join(number);
  return {
    close: () => socket.close(),
    unref: () => socket.unref(),
    [Symbol.dispose]: () => socket.close(),
  };
};
