import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hkdfSync,
  type KeyObject,
} from 'node:crypto';
import { type Authenticate, MAC_BYTES } from '@unbounded/health';

/**
 * Keys that authenticate probes: both ends derive them from their WireGuard keys, so that there is nothing to distribute.
 * X25519 gives a secret that only the two have; HKDF-SHA256 (RFC 5869) makes a key of it for each direction, so that a
 * packet sent back to its sender is not taken for the peer's.
 */
export interface ProbeKeys {
  /** Codes of what we send, and of what the peer sends. */
  readonly own: Authenticate;
  readonly peer: Authenticate;
}

const LABEL = 'unbounded probe v1';
const KEY_BYTES = 32;
/** RFC 8410: the DER forms are these, then the 32 bytes. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');

const publicKeyObject = (bytes: Uint8Array): KeyObject =>
  createPublicKey({ key: Buffer.concat([SPKI_PREFIX, bytes]), format: 'der', type: 'spki' });

const authenticator = (secret: Buffer, from: Uint8Array, to: Uint8Array): Authenticate => {
  const info = Buffer.concat([Buffer.from(LABEL), from, to]);
  // As a key object: made once, it is several times as fast as bytes that each code would make one of.
  const key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), info, KEY_BYTES)));
  return (bytes) => createHmac('sha256', key).update(bytes).digest().subarray(0, MAC_BYTES);
};

/** @param privateKey base64, as WireGuard has it */
export const createProbeKeys = (privateKey: string): ((peerPublicKey: string) => ProbeKeys) => {
  const der = Buffer.concat([PKCS8_PREFIX, Buffer.from(privateKey, 'base64')]);
  const own = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  const ownPublic = createPublicKey(own).export({ format: 'der', type: 'spki' }).subarray(SPKI_PREFIX.length);
  /** @throws Error when the peer's key is none, or one of those few that give everybody the same secret */
  return (peerPublicKey) => {
    const peerPublic = Buffer.from(peerPublicKey, 'base64');
    const secret = diffieHellman({ privateKey: own, publicKey: publicKeyObject(peerPublic) });
    return {
      own: authenticator(secret, ownPublic, peerPublic),
      peer: authenticator(secret, peerPublic, ownPublic),
    };
  };
};
