import { EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { containsAddress, formatPrefix, parseAddress, parsePrefix, type Prefix, prefixOf } from '@unbounded/ip';
import { isAbsent, type Link, type LinkAddress, type RouteSocket } from '@unbounded/netlink';
import type { Problem } from '@unbounded/topology';
import { familyOf } from '../kernel/nft-family.ts';
import type { Claims } from './claims.ts';
import type { EgressPlan } from './plan/egress-plan.ts';

/**
 * Egress addresses on the node's devices, so that the kernel answers ARP and neighbor discovery for them. Nothing of the node chooses
 * one as its source: they are deprecated (RFC 4862 5.5.4), and nftables drops what has one all the same.
 */

/** IFA_F_NODAD: whether an address is free is asked before it is taken. */
const NO_DUPLICATE_DETECTION = 0x02;

const withLength = (address: string): string => `${address}/${familyOf(address) === 'ip' ? 32 : 128}`;
const keyOf = ({ link, address }: Pick<LinkAddress, 'link' | 'address'>): string => `${link} ${address}`;

/** Kernels before 5.18 do not say who made an address: there those that are deprecated and wanted, or were, are ours. */
const ourAddresses = (present: readonly LinkAddress[], known: ReadonlySet<string>): LinkAddress[] => {
  const isSaid = present.some(({ protocol }) => protocol !== undefined);
  return present.filter(
    ({ protocol, address, deprecated = false }) =>
      protocol === EGRESS_ROUTE_PROTOCOL || (!isSaid && deprecated && known.has(address)),
  );
};

/** The devices of the node and their addresses, at one moment. */
export interface PresentAddresses {
  readonly links: readonly Link[];
  readonly present: readonly LinkAddress[];
}

export const listAddresses = async (net: RouteSocket): Promise<PresentAddresses> => {
  const [links, present] = await Promise.all([net.links.list(), net.addresses.list()]);
  return { links, present };
};

/** Those of the wanted ones that the node has by another one's doing, and the device that has each. */
export const foreignAddresses = (
  { links, present }: PresentAddresses,
  wanted: EgressPlan['addresses'],
): ReadonlyMap<string, string> => {
  const names = new Map(links.map(({ index, name }) => [index, name]));
  const texts = new Set(wanted.map(({ address }) => address));
  const ours = new Set(ourAddresses(present, new Set([...texts].map(withLength))));
  return new Map(
    present
      .filter((entry) => !ours.has(entry))
      .map(({ address, link }) => [address.split('/')[0]!, names.get(link) ?? `with index ${link}`] as const)
      .filter(([address]) => texts.has(address)),
  );
};

const inUse = (address: string, usedBy: string): Problem => ({
  reason: 'EgressAddressInUse',
  message: `egress address ${address}: the host with MAC ${usedBy} has it: nothing leaves with it here; free it there, or take it out of the pool`,
});

/**
 * The wanted ones without those that another host of their LAN has, and those of which that is being asked: the node drops packets of an egress
 * address that are not egress, so it would not reach that host. One that the node had by right until now stays while it is asked.
 */
export const freeAddresses = (
  { links, present }: PresentAddresses,
  wanted: EgressPlan['addresses'],
  had: ReadonlySet<string>,
  claims: Pick<Claims, 'stateOf'>,
): { readonly addresses: EgressPlan['addresses']; readonly problems: readonly Problem[] } => {
  const byName = new Map(links.map((link) => [link.name, link]));
  const known = new Set(wanted.map(({ address }) => withLength(address)));
  const ours = new Set(ourAddresses(present, known).map(keyOf));
  const problems: Problem[] = [];
  const addresses = wanted.filter(({ address, device }) => {
    const link = device === undefined ? undefined : byName.get(device);
    if (!link || ours.has(keyOf({ link: link.index, address: withLength(address) }))) return true;
    const state = claims.stateOf(address, link);
    if (state === 'free' || state === 'asked') return state === 'free' || had.has(address);
    problems.push(inUse(address, state.usedBy));
    return false;
  });
  return { addresses, problems };
};

const failed = (address: string, { message }: Error): Problem => ({
  reason: 'EgressAddressFailed',
  message: `egress address ${address}: ${message}: nothing leaves with it here`,
});

const stays = (address: string, { message }: Error): Problem => ({
  reason: 'EgressAddressFailed',
  message: `egress address ${address}: cannot take it off its device (${message}): it is not this node's any more, and no other gets it before; the agent tries again`,
});

const missingDevice = (address: string, device: string): Problem => ({
  reason: 'EgressAddressUnreachable',
  message: `egress address ${address}: the node has no device ${device}: correct the pool's interface, or its nodeSelector`,
});

export interface HeldAddresses {
  readonly held: ReadonlySet<string>;
  /** Wanted no more, and still there. */
  readonly staying: ReadonlySet<string>;
  /** The devices of those that stand on one. */
  readonly devices: ReadonlyMap<string, Link>;
  /** Taken by this pass. */
  readonly taken: ReadonlySet<string>;
  readonly problems: readonly Problem[];
}

/**
 * @param former addresses that an agent of this node may have made
 * @param claims who is asked before an address is taken
 */
export const ensureAddresses = async (
  net: RouteSocket,
  wanted: EgressPlan['addresses'],
  former: ReadonlySet<string>,
  claims: Pick<Claims, 'stateOf'>,
): Promise<HeldAddresses> => {
  const { links, present } = await listAddresses(net);
  const byName = new Map(links.map((link) => [link.name, link]));
  const known = new Set([...former, ...wanted.map(({ address }) => address)].map(withLength));
  const ours = new Map(ourAddresses(present, known).map((entry) => [keyOf(entry), entry]));
  const held = new Set<string>();
  const kept = new Set<string>();
  const devices = new Map<string, Link>();
  const taken = new Set<string>();
  const problems: Problem[] = [];
  for (const { address, device } of wanted) {
    const link = device === undefined ? undefined : byName.get(device);
    if (device === undefined) held.add(address);
    else if (!link) problems.push(missingDevice(address, device));
    else {
      const entry = { link: link.index, address: withLength(address) };
      const flags = familyOf(address) === 'ip' ? 0 : NO_DUPLICATE_DETECTION;
      try {
        if (!ours.has(keyOf(entry))) {
          if (claims.stateOf(address, link) !== 'free') continue; // the next plan is without it
          await net.addresses.create({ ...entry, flags, deprecated: true, protocol: EGRESS_ROUTE_PROTOCOL });
          taken.add(address);
        }
        kept.add(keyOf(entry));
        held.add(address);
        devices.set(address, link);
      } catch (error) {
        problems.push(failed(address, error as Error));
      }
    }
  }
  const staying = new Set<string>();
  for (const [key, entry] of ours) {
    if (kept.has(key)) continue;
    await net.addresses.delete(entry).catch((error: Error) => {
      if (isAbsent(error)) return;
      const [address = ''] = entry.address.split('/');
      problems.push(stays(address, error));
      if (!held.has(address)) staying.add(address);
    });
  }
  return { held, staying, devices, taken, problems };
};

/** Networks that the node is attached to by devices that are not ours, the loopback left out. */
export interface AttachedNetwork {
  readonly interface: string;
  readonly cidr: string;
}

const isForeign = ({ alias = '', flags, name }: Link): boolean =>
  !alias.startsWith('unbounded') && (flags & LOOPBACK) === 0 && !name.startsWith('veth');
const LOOPBACK = 8; // IFF_LOOPBACK
const LINK_LOCAL = parsePrefix('fe80::/10');

const networkOf = (text: string): Prefix | undefined => {
  const slash = text.indexOf('/');
  const address = parseAddress(text.slice(0, slash));
  const length = Number(text.slice(slash + 1));
  const isHost = length === (address.family === 4 ? 32 : 128);
  if (isHost || (address.family === 6 && containsAddress(LINK_LOCAL, address))) return undefined;
  return prefixOf(address, length);
};

export const attachedNetworks = ({ links, present }: PresentAddresses): AttachedNetwork[] => {
  const names = new Map(links.filter(isForeign).map(({ index, name }) => [index, name]));
  const networks = present.flatMap(({ link, address, protocol }) => {
    const name = names.get(link);
    const network = name === undefined || protocol === EGRESS_ROUTE_PROTOCOL ? undefined : networkOf(address);
    return name !== undefined && network ? [{ interface: name, cidr: formatPrefix(network) }] : [];
  });
  const unique = new Map(networks.map((one) => [`${one.interface} ${one.cidr}`, one]));
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
};

/** The device with the smallest network that holds the address. */
export const deviceFor = (networks: readonly AttachedNetwork[], address: string): string | undefined => {
  const wanted = parseAddress(address);
  return networks
    .map((one) => ({ ...one, prefix: parsePrefix(one.cidr) }))
    .filter(({ prefix }) => containsAddress(prefix, wanted))
    .sort((a, b) => b.prefix.length - a.prefix.length)[0]?.interface;
};
