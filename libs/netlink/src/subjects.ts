import { ADDRESS_MESSAGE, decodeAddress, encodeAddress, encodeAddressDump } from './link-address.codec.ts';
import type {
  IpFamily,
  LinkAddress,
  Neighbour,
  NeighbourSpec,
  Nexthop,
  NexthopSpec,
  Route,
  RouteSpec,
  Rule,
  RuleSpec,
} from './model/route.ts';
import {
  decodeNeighbour,
  encodeNeighbour,
  encodeNeighbourDump,
  isIpOrFdb,
  NEIGHBOUR_MESSAGE,
} from './neighbour.codec.ts';
import {
  decodeNexthop,
  encodeNexthop,
  encodeNexthopDelete,
  encodeNexthopDump,
  NEXTHOP_MESSAGE,
} from './nexthop.codec.ts';
import {
  decodeRoute,
  encodeRoute,
  encodeRouteDelete,
  encodeRouteDump,
  isIpRoute,
  ROUTE_MESSAGE,
} from './route.codec.ts';
import type { RouteFilter } from './route-socket.port.ts';
import { decodeRule, encodeRule, encodeRuleDump, isIpRule, RULE_MESSAGE } from './rule.codec.ts';
import type { Subject } from './verbs.ts';

const wanted = (filter: unknown, value: unknown): boolean => filter === undefined || filter === value;
const familyOfText = (text: string): IpFamily => (text.includes(':') ? 6 : 4);

type LinkFilter<Family> = { readonly family?: Family; readonly link?: number };

export const ADDRESSES: Subject<LinkAddress, LinkAddress, LinkFilter<IpFamily>> = {
  messages: ADDRESS_MESSAGE,
  encode: encodeAddress,
  encodeDelete: encodeAddress,
  encodeDump: encodeAddressDump,
  decode: decodeAddress,
  matches: (value, filter) => wanted(filter.link, value.link) && wanted(filter.family, familyOfText(value.address)),
  name: 'address',
  describe: ({ address, link }) => `${address} on link ${link}`,
};

export const ROUTES: Subject<RouteSpec, Route, RouteFilter> = {
  messages: ROUTE_MESSAGE,
  encode: encodeRoute,
  encodeDelete: encodeRouteDelete,
  encodeDump: encodeRouteDump,
  decode: (body) => (isIpRoute(body) ? decodeRoute(body) : undefined),
  matches: (value, filter) =>
    wanted(filter.family, value.family) &&
    wanted(filter.table, value.table) &&
    wanted(filter.protocol, value.protocol) &&
    (filter.link === undefined ||
      value.link === filter.link ||
      (value.nexthops ?? []).some(({ link }) => link === filter.link)),
  name: 'route',
  describe: ({ dst, table, metric }) =>
    `${dst}${table === undefined ? '' : ` table ${table}`}${metric === undefined ? '' : ` metric ${metric}`}`,
};

export const NEXTHOPS: Subject<NexthopSpec, Nexthop, { readonly groupsOnly?: boolean; readonly link?: number }> = {
  messages: NEXTHOP_MESSAGE,
  encode: encodeNexthop,
  encodeDelete: encodeNexthopDelete,
  encodeDump: encodeNexthopDump,
  decode: decodeNexthop,
  matches: (value, filter) => wanted(filter.link, value.link) && (!filter.groupsOnly || value.group !== undefined),
  name: 'nexthop',
  describe: ({ id }) => `${id}`,
};

export const RULES: Subject<RuleSpec, Rule, { readonly family?: IpFamily }> = {
  messages: RULE_MESSAGE,
  encode: encodeRule,
  encodeDelete: encodeRule,
  encodeDump: encodeRuleDump,
  decode: (body) => (isIpRule(body) ? decodeRule(body) : undefined),
  matches: (value, filter) => wanted(filter.family, value.family),
  name: 'rule',
  describe: ({ family, priority }) => `IPv${family} priority ${priority}`,
};

export const NEIGHBOURS: Subject<NeighbourSpec, Neighbour, LinkFilter<IpFamily | 'bridge'>> = {
  messages: NEIGHBOUR_MESSAGE,
  encode: encodeNeighbour,
  encodeDelete: encodeNeighbour,
  encodeDump: encodeNeighbourDump,
  decode: (body) => (isIpOrFdb(body) ? decodeNeighbour(body) : undefined),
  matches: (value, filter) => wanted(filter.link, value.link) && wanted(filter.family, value.family),
  name: 'neighbour',
  describe: ({ address, mac, link }) => `${address ?? mac ?? ''} on link ${link}`,
};
