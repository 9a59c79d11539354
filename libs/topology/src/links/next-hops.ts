import { type Family, firstAddress, formatAddress } from '@unbounded/ip';
import type { PeerLink } from './links.plan.ts';
import type { LocalNode } from './local-node.ts';
import { DEVICES, type NextHop, type TunnelKind } from '../plan.ts';
import { familyOf, ownIp } from './underlay.ts';
import { wireGuardInterfaceOf } from './lanes.ts';
import type { Member } from '../world/world.ts';

/** Devices and next hops of links. */

/** A node's address in the overlay: the first of its first block of the family. */
export const overlayAddress = (member: Member, family: Family): string | undefined => {
  const block = member.podCidrs.find((own) => own.family === family);
  return block && formatAddress(firstAddress(block));
};

const FNV64 = { offset: 0xcbf29ce484222325n, prime: 0x100000001b3n, mask: 0xffffffffffffffffn } as const;

/** 48 bits of FNV-1a, hexadecimal: a name for an address that is too long to stand in a device's name (15 characters). */
const shortHash = (text: string): string => {
  const hash = Array.from(text).reduce<bigint>(
    (sum, character) => ((sum ^ BigInt(character.codePointAt(0)!)) * FNV64.prime) & FNV64.mask,
    FNV64.offset,
  );
  return (hash >> 16n).toString(16).padStart(12, '0');
};

const DEVICE_PREFIXES = { GENEVE: 'gn', IPIP: 'ip' } as const;

/** The name of a peer's own device: `gn` or `ip` and the peer's IPv4 address as a decimal number, or `6` and a hash. */
export const peerDevice = (kind: 'GENEVE' | 'IPIP', remoteIp: string): string => {
  const prefix = DEVICE_PREFIXES[kind];
  if (familyOf(remoteIp) === 6) return `${prefix}6${shortHash(remoteIp)}`;
  return prefix + remoteIp.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
};

/** The tunnel device of a link that neither WireGuard nor plain routing carries. */
export const tunnelDevice = ({ dataplane }: LocalNode, kind: TunnelKind, remoteIp: string): string =>
  dataplane === 'netlink' && kind !== 'VXLAN' ? peerDevice(kind, remoteIp) : DEVICES[kind];

/** Where packets of a family for a link's peer go; undefined for plain routing, and while the gateway has no port. */
export const nextHopOf = (local: LocalNode, link: PeerLink, family: Family): NextHop | undefined => {
  const { protocol, remoteIp, peer } = link;
  if (protocol === 'None') return undefined;
  if (protocol === 'WireGuard') {
    const device = wireGuardInterfaceOf(local, link);
    return device === undefined ? undefined : { device, protocol, node: peer.name };
  }
  const hop = { device: tunnelDevice(local, protocol, remoteIp!), protocol, remoteIp: remoteIp! };
  if (protocol === 'IPIP') return { ...hop, node: peer.name };
  // The receiver's device has the MAC of its own address, which is not always the one that it is called at.
  const peerIp = ownIp(peer);
  const peers = peerIp === undefined ? {} : { peerIp };
  const gatewayIp = local.dataplane === 'netlink' ? overlayAddress(peer, family) : undefined;
  if (gatewayIp !== undefined) return { ...hop, gatewayIp, ...peers, node: peer.name };
  return { ...hop, ...(peerIp === remoteIp ? {} : peers), node: peer.name };
};

/** The neighbour to which plain routing sends packets of a family: IPv6 cannot go by an IPv4 neighbour. */
export const plainNeighbour = (link: PeerLink, family: Family): string | undefined => {
  if (link.protocol !== 'None') return undefined;
  return (link.external ? link.peer.externalIps : link.peer.internalIps).find((ip) => familyOf(ip) === family);
};
