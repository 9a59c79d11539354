import type { Network } from '@unbounded/crds';
import { type Address, AddressSet, formatAddress, parsePrefix, tryParseAddress } from '@unbounded/ip';
import { isStationMac, localMac } from './mac.ts';
import type { AskedNetwork } from './asked-network.ts';
import { chooseAddresses, isReserved } from './pool.ts';

/** The MAC and the addresses of an endpoint that is about to be made. */

export interface EndpointWish {
  readonly asked: Pick<AskedNetwork, 'mac' | 'addresses' | 'segment'>;
  /** Of the endpoint of the same name that was there before: a pod that comes back has its addresses again. */
  readonly held?: { readonly mac: string; readonly addresses: readonly string[] };
  /** Of others in the network, as text. */
  readonly taken: ReadonlySet<string>;
  /** 32 bytes: of a hash of the endpoint's name, so that the same pod gets the same again where that is free. */
  readonly seed: Uint8Array;
}

export interface PlannedEndpoint {
  readonly mac: string;
  /** Canonical. */
  readonly addresses: readonly string[];
}

const refused = (network: Network, field: string, value: string, valid: string): RangeError =>
  new RangeError(`Network ${network.metadata.name}: ${field} "${value}": ${valid}`);

const fixedAddresses = (network: Network, texts: readonly string[]): string[] => {
  const prefixes = network.spec.prefixes.map(parsePrefix);
  const inside = AddressSet.of(prefixes);
  const gateways = new Set(network.spec.gateways ?? []);
  const found = texts.map((text) => {
    const address = tryParseAddress(text);
    if (!address || !inside.has(address))
      throw refused(network, 'addresses', text, `must be an address inside ${network.spec.prefixes.join(', ')}`);
    if (isReserved(prefixes, address))
      throw refused(network, 'addresses', text, 'is the first or the last of its prefix, which no station has');
    const canonical = formatAddress(address);
    if (gateways.has(canonical))
      throw refused(network, 'addresses', text, 'is an address of spec.gateways, which no endpoint has');
    return canonical;
  });
  return [...new Set(found)];
};

const addressOf = (text: string): Address[] => {
  const address = tryParseAddress(text);
  return address ? [address] : [];
};

const chosenAddresses = (network: Network, { held, taken, seed }: EndpointWish): readonly string[] => {
  const { prefixes, gateways = [] } = network.spec;
  const inside = AddressSet.of(prefixes.map(parsePrefix));
  const isStill = (text: string): boolean => addressOf(text).some((address) => inside.has(address)) && !taken.has(text);
  const families = new Set(prefixes.map((text) => parsePrefix(text).family));
  const isWhole =
    new Set((held?.addresses ?? []).flatMap(addressOf).map(({ family }) => family)).size === families.size;
  if (held && isWhole && held.addresses.every(isStill)) return held.addresses;
  const pool = { prefixes: prefixes.map(parsePrefix), gateways: gateways.flatMap(addressOf) };
  const number = new DataView(seed.buffer, seed.byteOffset).getBigUint64(0);
  return chooseAddresses(pool, [...taken].flatMap(addressOf), number).map(formatAddress);
};

const MAC_AT = 8;
const MAC_OCTETS = 6;

/** @throws RangeError for a wish that cannot be fulfilled, PoolExhaustedError */
export const planEndpoint = (network: Network, wish: EndpointWish): PlannedEndpoint => {
  const { asked, held, taken, seed } = wish;
  const segments = (network.spec.segments ?? []).map(({ name }) => name);
  if (asked.segment !== undefined && !segments.includes(asked.segment))
    throw refused(
      network,
      'segment',
      asked.segment,
      `must be one of ${segments.join(', ') || 'none: it has no segments'}`,
    );
  if (asked.mac !== undefined && !isStationMac(asked.mac))
    throw refused(network, 'mac', asked.mac, 'must be the MAC address of a station');
  const heldMac = held && !taken.has(held.mac) ? held.mac : undefined;
  const addresses = asked.addresses ? fixedAddresses(network, asked.addresses) : [...chosenAddresses(network, wish)];
  return { mac: asked.mac ?? heldMac ?? localMac(seed.subarray(MAC_AT, MAC_AT + MAC_OCTETS)), addresses };
};
