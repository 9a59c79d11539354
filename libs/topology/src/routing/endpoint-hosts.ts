import { tryParseAddress } from '@unbounded/ip';
import type { World } from '../world/world.ts';

/** Of an endpoint like `192.0.2.1:51820`, `[2001:db8::1]:51820` or `relay.example:443`: an address without brackets, or a name. */
export const hostOf = (endpoint: string): string => endpoint.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

/** That of an external relay, if the Mesh gives it by an address: a name stands for different ones over time. */
export const relayAddress = ({ relay }: World): string | undefined => {
  if (relay?.node.provider !== 'external') return undefined;
  const host = hostOf(relay.node.endpoint);
  return tryParseAddress(host) && host;
};
