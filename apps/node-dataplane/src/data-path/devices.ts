import type { TunnelKind } from './kernel-plan.ts';

export { DEVICES } from '@unbounded/config/ownership';

/** The virtual network identifier of all our tunnels. */
export const TUNNEL_VNI = 1;

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
export const peerDevice = (kind: Exclude<TunnelKind, 'VXLAN'>, remoteIp: string): string => {
  const prefix = DEVICE_PREFIXES[kind];
  if (remoteIp.includes(':')) return `${prefix}6${shortHash(remoteIp)}`;
  return prefix + remoteIp.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
};
