import { type Link, NetlinkError, type RouteSocket } from '@unbounded/netlink';
import { isUnknownKind } from './devices.ts';

/** What the node's own network is like, and what its kernel can do. */
export interface Underlay {
  readonly device: string;
  readonly mtuBytes: number;
}

const DEFAULTS = new Set(['0.0.0.0/0', '::/0']);

/** The device of the default route with the lowest metric, IPv4 first. @throws Error when there is none */
export const findUnderlay = async (net: RouteSocket): Promise<Underlay> => {
  const routes = (await net.routes.list({ table: 254 })).filter(({ dst }) => DEFAULTS.has(dst));
  const [best] = routes.sort((a, b) => a.family - b.family || (a.metric ?? 0) - (b.metric ?? 0));
  const index = best?.link ?? best?.nexthops?.[0]?.link;
  const link = index === undefined ? undefined : await net.links.get(index);
  if (!link) throw new Error('the node has no default route: its underlay device and MTU are not known');
  return { device: link.name, mtuBytes: link.mtu };
};

const PROBE = 'ub-probe';

/** Whether the kernel has a kind of device, found by making one (down, and gone at once). */
const hasKind = async (net: RouteSocket, kind: 'geneve' | 'ipip'): Promise<boolean> => {
  try {
    const link: Link = await net.links.create({ name: PROBE, kind: { kind, external: true } });
    await net.links.delete(link.index);
    return true;
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    // Any other refusal speaks of a device of the kind that is there already: EEXIST for ipip, EBUSY or EPERM for geneve.
    return !isUnknownKind(error);
  }
};

/** Tunnel protocols that this node can do. WireGuard always works: in the kernel or in user space. */
export const findProtocols = async (net: RouteSocket): Promise<string[]> => {
  const protocols = ['None', 'VXLAN', 'WireGuard'];
  if (await hasKind(net, 'geneve')) protocols.push('GENEVE');
  if (await hasKind(net, 'ipip')) protocols.push('IPIP');
  return protocols.sort();
};
