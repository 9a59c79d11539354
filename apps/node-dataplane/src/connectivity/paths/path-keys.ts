import { createHmac, createSecretKey, diffieHellman, hkdfSync } from 'node:crypto';
import { type Authenticate, MAC_BYTES, PAIR_NAME_BYTES } from '@unbounded/health';
import { privateKeyObject, publicKeyBytes, publicKeyObject } from '@unbounded/wireguard/x25519';

/**
 * Keys of path probes: each lane's own, from the two WireGuard keys of the lane (X25519, then HKDF-SHA256). One for
 * each direction, so that a packet sent back to its sender is not the peer's; beside it a name, by which the receiver finds
 * the key. Names tell nothing of who is meant to those who know the public keys only.
 */
interface DirectionKeys {
  readonly name: Uint8Array;
  readonly authenticate: Authenticate;
}

export interface PathKeys {
  /** Of what we send, and of what the peer sends. */
  readonly own: DirectionKeys;
  readonly peer: DirectionKeys;
}

const LABEL = 'unbounded path v1';
const KEY_BYTES = 32;

const direction = (secret: Buffer, from: Uint8Array, to: Uint8Array): DirectionKeys => {
  const info = Buffer.concat([Buffer.from(LABEL), from, to]);
  const bytes = Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), info, KEY_BYTES + PAIR_NAME_BYTES));
  const key = createSecretKey(bytes.subarray(0, KEY_BYTES));
  return {
    name: bytes.subarray(KEY_BYTES),
    authenticate: (text) => createHmac('sha256', key).update(text).digest().subarray(0, MAC_BYTES),
  };
};

/** Keys are base64. @throws Error when one is none, or one of those few that give everybody the same secret */
export const derivePathKeys = (privateKey: string, peerPublicKey: string): PathKeys => {
  const own = privateKeyObject(Buffer.from(privateKey, 'base64'));
  const ownPublic = publicKeyBytes(own);
  const peerPublic = Buffer.from(peerPublicKey, 'base64');
  const secret = diffieHellman({ privateKey: own, publicKey: publicKeyObject(peerPublic) });
  return { own: direction(secret, ownPublic, peerPublic), peer: direction(secret, peerPublic, ownPublic) };
};
