import { LINK_ALIAS } from '@unbounded/config/ownership';
import { type Link, NetlinkError, type RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { isOurs, isUnknownKind, LINK_GROUP } from './devices.ts';
import { removeDevice } from '../../kernel/links.ts';

/** What the node's own network is like, and what its kernel can do. */
export interface Underlay {
  readonly device: string;
  readonly mtuBytes: number;
}

const DEFAULTS = new Set(['0.0.0.0/0', '::/0']);
const MAIN_TABLE = 254;
const ARPHRD_LOOPBACK = 772;

/**
 * The device that carries an address of the node; without one (no address is known yet) that of the default route with the
 * lowest metric, IPv4 first. Undefined: neither is there.
 */
export const findUnderlay = async (
  net: RouteSocket,
  internalIps: readonly string[] = [],
): Promise<Underlay | undefined> => {
  const index = (await carrierOf(net, internalIps)) ?? (await defaultRouteLink(net));
  const link = index === undefined ? undefined : await net.links.get(index);
  return link && { device: link.name, mtuBytes: link.mtu };
};

/** The address may stand on lo or a dummy (BGP to the host): such a device carries nothing to other nodes. */
const CARRIES_NOTHING = new Set(['dummy']);
const carriesPackets = ({ hardwareType, kind }: Link): boolean =>
  hardwareType !== ARPHRD_LOOPBACK && !CARRIES_NOTHING.has(kind?.kind ?? '');

const carrierOf = async (net: RouteSocket, internalIps: readonly string[]): Promise<number | undefined> => {
  const addresses = await net.addresses.list();
  for (const ip of internalIps) {
    const found = addresses.filter(({ address }) => address.split('/')[0] === ip);
    for (const { link: index } of found) {
      const link = await net.links.get(index);
      if (link && carriesPackets(link)) return index;
    }
  }
  return undefined;
};

const defaultRouteLink = async (net: RouteSocket): Promise<number | undefined> => {
  const routes = (await net.routes.list({ table: MAIN_TABLE })).filter(({ dst }) => DEFAULTS.has(dst));
  const [best] = routes.sort((a, b) => a.family - b.family || (a.metric ?? 0) - (b.metric ?? 0));
  return best?.link ?? best?.nexthops?.[0]?.link;
};

/** What is known of the underlay, pass by pass: what was found last stands while nothing is found. */
export interface UnderlayWatch {
  /** @param internalIps of the node, the preferred one first */
  look(
    internalIps: readonly string[],
  ): Promise<{ readonly underlay?: Underlay; readonly problems: readonly Problem[] }>;
}

export const createUnderlayWatch = (
  find: (internalIps: readonly string[]) => Promise<Underlay | undefined>,
): UnderlayWatch => {
  let last: Underlay | undefined;
  return {
    async look(internalIps) {
      const found = await find(internalIps);
      last = found ?? last;
      return { ...(last && { underlay: last }), problems: found ? [] : [unknownUnderlay(internalIps, last)] };
    },
  };
};

const unknownUnderlay = (internalIps: readonly string[], last: Underlay | undefined): Problem => {
  const wanted = internalIps.length === 0 ? '' : `no device has ${internalIps.join(' or ')}, and `;
  const stands = last ? `the MTU of ${last.device}, ${last.mtuBytes} bytes, still counts` : 'the last plan stands';
  const message = `${wanted}there is no default route: the MTU of the node's network is not known, ${stands}; give a device the Node's InternalIP, or add a default route`;
  return { reason: 'UnderlayUnknown', message };
};

const PROBE = 'ub-probe';

/** A name that nobody has: one that is taken says nothing of the kind. */
const freeName = async (net: RouteSocket): Promise<string> => {
  const taken = new Set((await net.links.list()).map(({ name }) => name));
  for (let number = 0; ; number++) {
    const name = number === 0 ? PROBE : `${PROBE}${number}`;
    if (!taken.has(name)) return name;
  }
};

/** Whether the kernel has a kind of device, found by making one (down, and gone at once). */
const hasKind = async (net: RouteSocket, kind: 'geneve' | 'ipip'): Promise<boolean> => {
  try {
    const link: Link = await net.links.create({
      name: await freeName(net),
      group: LINK_GROUP,
      alias: LINK_ALIAS,
      kind: { kind, external: true },
    });
    await net.links.delete(link.index);
    return true;
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    // Any other refusal speaks of a device of the kind that is there already: EEXIST for ipip, EBUSY or EPERM for geneve.
    return !isUnknownKind(error);
  }
};

/** An agent that died between making and deleting one left it, and it holds a port that the node's own device needs. */
const removeLeftover = async (net: RouteSocket): Promise<void> => {
  const left = await net.links.get(PROBE);
  if (left && isOurs(left)) await removeDevice(net, left);
};

/** Tunnel protocols that this node can do. WireGuard always works: in the kernel or in user space. */
export const findProtocols = async (net: RouteSocket): Promise<string[]> => {
  await removeLeftover(net);
  const protocols = ['None', 'VXLAN', 'WireGuard'];
  if (await hasKind(net, 'geneve')) protocols.push('GENEVE');
  if (await hasKind(net, 'ipip')) protocols.push('IPIP');
  return protocols.sort();
};
