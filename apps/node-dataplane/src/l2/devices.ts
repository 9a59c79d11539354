import { DEVICES } from '@unbounded/config/ownership';
import type { CreatableKind, Link, RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { removeDevice } from '../kernel/links.ts';
import { writeSetting } from '../kernel/proc-sys.ts';
import { isPortName, L2_ALIAS, L2_PORT_ALIAS } from './names.ts';

/**
 * Where frames of the section's ports meet the node's forwarding. A bridge without ports takes what the port program hands to it as if it
 * had come from a wire. The node's own locator is routed to an ifb, which drops what no program took at its egress.
 */

/** Larger than what any link carries: the routes of connectivity say what fits. */
const MTU_BYTES = 9000;

interface DeviceSpec {
  readonly name: string;
  readonly kind: CreatableKind;
  readonly arp: boolean;
}

const ENTRY: DeviceSpec = { name: DEVICES.l2Entry, kind: { kind: 'bridge' }, arp: false };
const EXIT: DeviceSpec = { name: DEVICES.l2Exit, kind: { kind: 'ifb' }, arp: false };

/** Frames alone go there: the node has no address on it, learns nothing by it, and says nothing itself. */
const settle = (name: string): void => {
  writeSetting(`net/ipv6/conf/${name}/disable_ipv6`, '0');
  writeSetting(`net/ipv6/conf/${name}/accept_ra`, '0');
  writeSetting(`net/ipv6/conf/${name}/addr_gen_mode`, '1');
  writeSetting(`net/ipv6/conf/${name}/forwarding`, '1');
};

const foreign = (name: string): Problem => ({
  reason: 'ForeignLink',
  message: `a link named ${name} exists that is not ours (its alias is not "${L2_ALIAS}"): it is left alone; rename or remove it, or pods in Networks reach no other node`,
});

const ensureDevice = async (net: RouteSocket, spec: DeviceSpec): Promise<Link | undefined> => {
  const found = await net.links.get(spec.name);
  if (found && found.alias !== L2_ALIAS) return undefined;
  if (found && found.kind?.kind !== spec.kind.kind) await removeDevice(net, found);
  const isThere = found !== undefined && found.kind?.kind === spec.kind.kind;
  const link = isThere ? found : await net.links.create({ ...spec, mtu: MTU_BYTES, alias: L2_ALIAS });
  settle(spec.name);
  if (!link.up || link.mtu !== MTU_BYTES) await net.links.modify(link.index, { up: true, mtu: MTU_BYTES });
  return link;
};

export interface L2Devices {
  readonly entry: Link;
  readonly exit: Link;
}

/** Up, with nothing that answers for them. */
export const ensureL2Devices = async (
  net: RouteSocket,
): Promise<{ readonly devices?: L2Devices; readonly problems: readonly Problem[] }> => {
  const [entry, exit] = [await ensureDevice(net, ENTRY), await ensureDevice(net, EXIT)];
  if (entry && exit) return { devices: { entry, exit }, problems: [] };
  return { problems: [...(entry ? [] : [foreign(ENTRY.name)]), ...(exit ? [] : [foreign(EXIT.name)])] };
};

/** The node's ends of the links of pods, whoever made them. */
export const listPorts = async (net: RouteSocket): Promise<Link[]> =>
  (await net.links.list()).filter(({ name, alias }) => isPortName(name) && alias === L2_PORT_ALIAS);

export const removeL2Devices = async (net: RouteSocket): Promise<void> => {
  for (const { name } of [ENTRY, EXIT]) {
    const link = await net.links.get(name);
    if (link?.alias === L2_ALIAS) await removeDevice(net, link);
  }
};
