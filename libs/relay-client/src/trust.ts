import { createHash, X509Certificate } from 'node:crypto';

import { KEY_BYTES } from '@unbounded/relay-protocol';

import type { ClientSettings } from './client.ts';
import { dialWith } from './dial.ts';

/** By what clients know that a relay is the right one; they leave any other. */
export interface RelayTrust {
  /** PEM: authorities that sign the certificates of relays, instead of those that the system knows. For TLS. */
  readonly caBundle?: string;
  /** The relays' own public key, base64. */
  readonly staticKey?: string;
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const MOST_CERTIFICATES = 64;

/** @throws Error that says what would be right */
const checkCaBundle = (pem: string): void => {
  const blocks = pem.match(CERTIFICATE) ?? [];
  if (blocks.length === 0 || blocks.length > MOST_CERTIFICATES)
    throw new Error(`caBundle has ${blocks.length} certificates: must have 1 to ${MOST_CERTIFICATES}, in PEM`);
  for (const [index, block] of blocks.entries()) {
    try {
      void new X509Certificate(block);
    } catch (error) {
      throw new Error(`caBundle: certificate ${index + 1} cannot be read (${(error as Error).message})`, {
        cause: error,
      });
    }
  }
};

/** @throws Error that says what would be right: nothing is to be used then, rather than without it */
export const checkTrust = ({ caBundle, staticKey }: RelayTrust): void => {
  if (caBundle !== undefined) checkCaBundle(caBundle);
  if (staticKey !== undefined && Buffer.from(staticKey, 'base64').length !== KEY_BYTES)
    throw new Error(`staticKey "${staticKey}" must be a key of ${KEY_BYTES} bytes in base64`);
};

/** What of a client's settings follows from it. */
export const settingsOf = ({ caBundle, staticKey }: RelayTrust): Pick<ClientSettings, 'dial' | 'pinnedKey'> => ({
  dial: dialWith(caBundle === undefined ? {} : { ca: caBundle }),
  ...(staticKey === undefined ? {} : { pinnedKey: Buffer.from(staticKey, 'base64') }),
});

/** Tells it from others, in a few characters; undefined: there is nothing to follow. */
export const trustDigest = ({ caBundle, staticKey }: RelayTrust): string | undefined =>
  caBundle === undefined && staticKey === undefined
    ? undefined
    : createHash('sha256')
        .update(JSON.stringify([caBundle, staticKey]))
        .digest('hex')
        .slice(0, 16);
