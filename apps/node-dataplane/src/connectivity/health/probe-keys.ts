import { createHmac, createSecretKey, diffieHellman, hkdfSync } from 'node:crypto';
import { type Authenticate, MAC_BYTES } from '@unbounded/health';
import { privateKeyObject, publicKeyBytes, publicKeyObject } from '@unbounded/wireguard/x25519';

/**
 * Keys that authenticate probes: both ends derive them from their WireGuard keys, so that there is nothing to distribute.
 * X25519 gives a secret that only the two have; HKDF-SHA256 (RFC 5869) makes a key of it for each direction, so that a
 * packet sent back to its sender is not taken for the peer's.
 *
 * While an end exchanges its WireGuard key it has two, and for some minutes afterwards the previous one. Requests are made
 * with our current key and the newest that the peer has told of, which shows it that we have heard; replies with the keys
 * of their request. Every combination is believed.
 */
export interface ProbeKeys {
  /** Codes of our requests. */
  readonly request: Authenticate;
  /** In the order in which they are tried. */
  readonly combinations: readonly KeyCombination[];
}

export interface KeyCombination {
  /** Codes of what we send, and of what the peer sends. */
  readonly own: Authenticate;
  readonly peer: Authenticate;
  /** Our key in it is the one that follows the current one. */
  readonly isOurNext: boolean;
}

/** Private keys, base64, as WireGuard has them. */
export interface NodeKeys {
  readonly current: string;
  readonly next?: string;
  readonly previous?: string;
}

/** Public keys. */
export interface PeerKeys {
  readonly publicKey: string;
  readonly nextPublicKey?: string;
}

const LABEL = 'unbounded probe v1';
const KEY_BYTES = 32;
const authenticator = (secret: Buffer, from: Uint8Array, to: Uint8Array): Authenticate => {
  const info = Buffer.concat([Buffer.from(LABEL), from, to]);
  // As a key object: made once, it is several times as fast as bytes that each code would make one of.
  const key = createSecretKey(Buffer.from(hkdfSync('sha256', secret, Buffer.alloc(0), info, KEY_BYTES)));
  return (bytes) => createHmac('sha256', key).update(bytes).digest().subarray(0, MAC_BYTES);
};

type Derive = (peerPublicKey: string) => Pick<KeyCombination, 'own' | 'peer'>;

/** @returns which throws an Error when the peer's key is none, or one of those few that give everybody the same secret */
const deriveFrom = (privateKey: string): Derive => {
  const own = privateKeyObject(Buffer.from(privateKey, 'base64'));
  const ownPublic = publicKeyBytes(own);
  return (peerPublicKey) => {
    const peerPublic = Buffer.from(peerPublicKey, 'base64');
    const secret = diffieHellman({ privateKey: own, publicKey: publicKeyObject(peerPublic) });
    return {
      own: authenticator(secret, ownPublic, peerPublic),
      peer: authenticator(secret, peerPublic, ownPublic),
    };
  };
};

/** Derived when first needed: most combinations never are, and there may be thousands of peers. */
const lazily = (derive: Derive, peerKey: string, isOurNext: boolean): KeyCombination => {
  let derived: ReturnType<Derive> | undefined;
  const get = (): ReturnType<Derive> => (derived ??= derive(peerKey));
  return { own: (bytes) => get().own(bytes), peer: (bytes) => get().peer(bytes), isOurNext };
};

export const createProbeKeys = ({ current, next, previous }: NodeKeys): ((peer: PeerKeys) => ProbeKeys) => {
  const own = [
    { derive: deriveFrom(current), isOurNext: false },
    ...(next === undefined ? [] : [{ derive: deriveFrom(next), isOurNext: true }]),
    ...(previous === undefined ? [] : [{ derive: deriveFrom(previous), isOurNext: false }]),
  ];
  /** @throws Error when a key of the peer is none, or one of those few that give everybody the same secret */
  return ({ publicKey, nextPublicKey }) => {
    const theirs = nextPublicKey === undefined ? [publicKey] : [nextPublicKey, publicKey];
    for (const key of theirs) own[0]!.derive(key);
    const combinations = own.flatMap(({ derive, isOurNext }) => theirs.map((key) => lazily(derive, key, isOurNext)));
    return { request: combinations[0]!.own, combinations };
  };
};
