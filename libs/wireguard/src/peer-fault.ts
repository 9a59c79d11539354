import { AddressSyntaxError, parsePrefix } from '@unbounded/ip';

import { type PeerSpec, WireGuardError } from './device.ts';
import { parseEndpoint } from './endpoint.codec.ts';
import { isKey } from './key.codec.ts';

const MAX_KEEPALIVE_SECONDS = 65_535;

/** Why a peer cannot be given to a device; undefined: it can. A device takes a change whole, so one such peer would stop all. */
export const peerFault = ({
  publicKey,
  endpoint,
  allowedIps,
  persistentKeepaliveSeconds = 0,
}: PeerSpec): string | undefined => {
  if (!isKey(publicKey)) return 'its public key is not 32 bytes as base64 (44 characters)';
  try {
    if (endpoint !== undefined) parseEndpoint(endpoint);
    for (const prefix of allowedIps) parsePrefix(prefix);
  } catch (error) {
    if (!(error instanceof WireGuardError || error instanceof AddressSyntaxError)) throw error;
    return error.message;
  }
  const isInterval = Number.isInteger(persistentKeepaliveSeconds) && persistentKeepaliveSeconds >= 0;
  return isInterval && persistentKeepaliveSeconds <= MAX_KEEPALIVE_SECONDS
    ? undefined
    : `its keepalive of ${persistentKeepaliveSeconds} s is not an integer between 0 and ${MAX_KEEPALIVE_SECONDS}`;
};
