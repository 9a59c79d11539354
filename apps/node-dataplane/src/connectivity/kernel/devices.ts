import { LINK_ALIAS, PORTS, ROUTE_PROTOCOL, VXLAN_SOURCE_PORTS } from '@unbounded/config/ownership';
import {
  type CreatableKind,
  createTun,
  type Link,
  type LinkAddress,
  NetlinkError,
  type RouteSocket,
} from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { TUNNEL_VNI } from '../../data-path/devices.ts';
import { enableIpv6, ensureDeviceSettings, isIpv6, prepareDevice } from './device-settings.ts';
import { type DeviceSpec, isTunnel } from './devices.plan.ts';
import type { Tunnel } from './taken-packets.plan.ts';

/** Devices: made, brought to their settings, and taken away. Only links that carry our alias are ever touched. */

/**
 * The kernel takes an alias only once a link is there, but a group (`ip link` shows it) from its first moment on: by that a
 * link is known to be ours whose agent died in between.
 */
export const LINK_GROUP = ROUTE_PROTOCOL;

export const isOurs = ({ alias = '', group }: Link): boolean =>
  alias === LINK_ALIAS || (alias === '' && group === LINK_GROUP);

/** A TUN has this name until it has its alias: one that a died agent left is taken up by the next. */
const UNNAMED_TUN = 'unbounded.new';

/**
 * Packets that wait in a TUN while wireguard-go has no processor: about as many as the kernel's WireGuard queues (1,024), not the
 * 500 of a TUN, which are full after half a second at 1,000 a second.
 */
const TUN_QUEUE_PACKETS = 1000;

const IPV6_LINK_LOCAL = /^fe80:/i;

/**
 * Its ports are pods: nothing that they send may steer it. A bridge takes frames to 01:80:c2:00:00:03 to 0f for itself and gives
 * them to the node as if the port were a device of its own: here they are forwarded, so that they pass the bridge's hooks.
 */
const BRIDGE = {
  kind: 'bridge',
  stp: false,
  multicastSnooping: false,
  linkLocalLearning: false,
  groupForwardMask: 0xfff8,
} as const;

const ipipTo = (remote: string, local: string | undefined): CreatableKind => ({
  kind: 'ipip',
  remote,
  ...(local === undefined ? {} : { local }),
});

/** The kinds to try for a purpose, the best first: not every kernel has all. */
const kindsFor = ({ purpose, remoteIp, localIp }: DeviceSpec): CreatableKind[] => {
  switch (purpose) {
    case 'anchor':
      return [{ kind: 'dummy' }, { kind: 'ifb' }];
    case 'bridge':
      return [BRIDGE];
    case 'vxlan':
      return [
        {
          kind: 'vxlan',
          external: true,
          port: PORTS.vxlan,
          sourcePorts: VXLAN_SOURCE_PORTS,
          learning: false,
          udp6ZeroChecksumRx: true,
        },
      ];
    case 'geneve':
      return remoteIp === undefined
        ? [{ kind: 'geneve', external: true, port: PORTS.geneve, udp6ZeroChecksumRx: true }]
        : [{ kind: 'geneve', vni: TUNNEL_VNI, remote: remoteIp, port: PORTS.geneve, udp6ZeroChecksumRx: true }];
    case 'ipip':
      return [remoteIp === undefined ? { kind: 'ipip', external: true } : ipipTo(remoteIp, localIp)];
    case 'wireguard':
      return [{ kind: 'wireguard' }];
    case 'echo':
      return []; // a TUN
  }
};

export const isUnknownKind = (error: unknown): boolean =>
  error instanceof NetlinkError && (error.code === 'EOPNOTSUPP' || error.code === 'ENOTSUP');

const settingsOf = (spec: DeviceSpec) => ({
  mtu: spec.mtuBytes,
  arp: spec.arp,
  alias: LINK_ALIAS,
  ...(spec.mac === undefined ? {} : { mac: spec.mac }),
});

const TUNS: ReadonlySet<DeviceSpec['purpose']> = new Set(['wireguard', 'echo']);

/** Makes the device in the first kind that the kernel knows; WireGuard last falls back to a TUN for wireguard-go. */
const createDevice = async (net: RouteSocket, spec: DeviceSpec): Promise<Link> => {
  for (const kind of kindsFor(spec)) {
    try {
      return await net.links.create({ name: spec.name, kind, group: LINK_GROUP, ...settingsOf(spec) });
    } catch (error) {
      if (!isUnknownKind(error)) throw error;
    }
  }
  if (!TUNS.has(spec.purpose)) {
    throw new Error(
      `the kernel has no ${kindsFor(spec)
        .map(({ kind }) => kind)
        .join(' or ')} devices: load the module`,
    );
  }
  createTun({ name: UNNAMED_TUN });
  await net.links.modify(UNNAMED_TUN, { name: spec.name, group: LINK_GROUP, ...settingsOf(spec) });
  return (await net.links.get(spec.name))!;
};

/** Old kernels do not tell of all settings: what is not told is not there. */
const isBridgeChanged = ({ kind }: Link): boolean => {
  if (kind?.kind !== 'bridge') return false;
  const { stp, multicastSnooping, linkLocalLearning, groupForwardMask = BRIDGE.groupForwardMask } = kind;
  return [stp, multicastSnooping, linkLocalLearning].includes(true) || groupForwardMask !== BRIDGE.groupForwardMask;
};

const settle = async (net: RouteSocket, spec: DeviceSpec, link: Link): Promise<void> => {
  if (link.kind?.kind === 'tun' && link.txQueuePackets !== TUN_QUEUE_PACKETS)
    await net.links.modify(link.index, { txQueuePackets: TUN_QUEUE_PACKETS });
  if (isBridgeChanged(link)) await net.links.modify(link.index, { kind: BRIDGE });
  const wrongMac = spec.mac !== undefined && link.mac !== spec.mac;
  if (link.mtu !== spec.mtuBytes || link.arp !== spec.arp || link.alias !== LINK_ALIAS || wrongMac)
    await net.links.modify(link.index, settingsOf(spec));
  if (link.kind?.kind === 'ipip' && spec.remoteIp !== undefined && link.kind.local !== spec.localIp)
    await net.links.modify(link.index, { kind: ipipTo(spec.remoteIp, spec.localIp) });
  ensureDeviceSettings(spec);
  if (!link.up && !isTunnel(spec)) await bringUp(net, spec, link);
};

export const bringUp = async (net: RouteSocket, spec: DeviceSpec, link: Link): Promise<void> => {
  prepareDevice(spec);
  await net.links.modify(link.index, { up: true });
};

const settleAddresses = async (
  net: RouteSocket,
  spec: DeviceSpec,
  link: Link,
  present: readonly LinkAddress[],
): Promise<void> => {
  const own = present.filter((entry) => entry.link === link.index && !IPV6_LINK_LOCAL.test(entry.address));
  const missing = spec.addresses.filter((wanted) => !own.some((entry) => entry.address === wanted));
  // The node may have had IPv4 blocks alone when the device came up.
  if (missing.some(isIpv6)) enableIpv6(spec);
  for (const address of missing)
    await net.addresses.replace({ link: link.index, address, flags: isIpv6(address) ? 0x02 : 0 });
  for (const entry of own.filter(({ address }) => !spec.addresses.includes(address))) await net.addresses.delete(entry);
};

const TUNNEL_KINDS = { vxlan: 'VXLAN', geneve: 'GENEVE', ipip: 'IPIP' } as const;

const tunnelOf = ({ kind }: Link): Tunnel[] => {
  if (kind?.kind !== 'vxlan' && kind?.kind !== 'geneve' && kind?.kind !== 'ipip') return [];
  return [{ kind: TUNNEL_KINDS[kind.kind], ...(kind.remote === undefined ? {} : { remoteIp: kind.remote }) }];
};

export interface DeviceState {
  /** Our devices by name, as they are now. */
  readonly links: ReadonlyMap<string, Link>;
  /** Wanted ones that are there and could not be brought to their settings: nothing is sent by them, but they may take packets. */
  readonly unsettled: ReadonlyMap<string, Link>;
  /** Our devices that take tunnel packets, also those that are not as they should be or no longer wanted. */
  readonly tunnels: readonly Tunnel[];
  /** Names of all our devices, also of those that are no longer wanted. */
  readonly names: readonly string[];
  readonly problems: readonly Problem[];
}

const foreign = (spec: DeviceSpec): Problem => ({
  reason: 'ForeignLink',
  message: `a link named ${spec.name} exists that is not ours (its alias is not "${LINK_ALIAS}"): it is left alone; rename or remove it, or what needs it stays off`,
});

const failed = ({ name, purpose }: DeviceSpec, { message }: Error): Problem =>
  purpose === 'echo'
    ? {
        reason: 'EchoFailed',
        message: `no echoes are sent through gateways: device ${name}: ${message}: is the module tun loaded?`,
      }
    : { reason: 'DeviceFailed', message: `device ${name}: ${message}` };

/** Brings every device of the list into being, tunnels down; a device that cannot be had is a problem and the others go on. */
export const ensureDevices = async (net: RouteSocket, specs: readonly DeviceSpec[]): Promise<DeviceState> => {
  const [present, addresses] = await Promise.all([net.links.list(), net.addresses.list()]);
  const [links, unsettled] = [new Map<string, Link>(), new Map<string, Link>()];
  const tunnels = present.filter(isOurs).flatMap(tunnelOf);
  const problems: Problem[] = [];
  for (const spec of specs) {
    try {
      const found = present.find(({ name }) => name === spec.name);
      if (found && !isOurs(found)) {
        problems.push(foreign(spec));
        continue;
      }
      const link = found ?? (await createDevice(net, spec));
      if (!found) tunnels.push(...tunnelOf(link));
      unsettled.set(spec.name, link);
      await settle(net, spec, link);
      await settleAddresses(net, spec, link, addresses);
      unsettled.delete(spec.name);
      links.set(spec.name, link);
    } catch (error) {
      problems.push(failed(spec, error as Error));
    }
  }
  const names = new Set([...present.filter(isOurs).map(({ name }) => name), ...links.keys(), ...unsettled.keys()]);
  return { links, unsettled, tunnels, names: [...names].sort(), problems };
};

/** Devices of ours that no plan needs any more. */
export const staleDevices = async (net: RouteSocket, wanted: ReadonlySet<string>): Promise<Link[]> =>
  (await net.links.list()).filter((link) => isOurs(link) && !wanted.has(link.name));
