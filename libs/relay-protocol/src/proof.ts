import { FrameError, KEY_BYTES } from './frame.ts';

/**
 * Proof that a client has the private key that belongs to the public one it registers, and that the relay has its own.
 * WireGuard's keys are X25519 keys, which cannot sign; so both ends derive a key from a Diffie-Hellman exchange with the
 * relay's ephemeral key (and with its static key, when it has one), and each shows that it has it:
 *
 *     transcript = Register frame | Hello frame | Challenge frame, as they went over the wire
 *     k          = HKDF-SHA256(ikm = X25519(client, ephemeral) | X25519(client, relay's static, if any),
 *                              salt = SHA256(transcript), info = "unbounded relay register v1", 32 bytes)
 *     Proof      = HMAC-SHA256(k, "client" | SHA256(transcript))
 *     Ready's tag = HMAC-SHA256(k, "relay" | SHA256(transcript))
 *
 * Both nonces are in the transcript, so a recorded Proof is worth nothing on another connection.
 */
const PROOF_INFO = 'unbounded relay register v1';

/** Cryptography of the platform. A private key is whatever `x25519` takes, so it may stay where it is kept. */
export interface ProofCrypto<PrivateKey> {
  /** RFC 7748. May throw when the public key is a point of low order. */
  x25519(privateKey: PrivateKey, publicKey: Uint8Array): Uint8Array | Promise<Uint8Array>;
  sha256(bytes: Uint8Array): Uint8Array;
  hmacSha256(key: Uint8Array, bytes: Uint8Array): Uint8Array;
  /** RFC 5869. */
  hkdfSha256(input: { ikm: Uint8Array; salt: Uint8Array; info: Uint8Array; length: number }): Uint8Array;
}

/** The three frames as they went over the wire. */
export interface Transcript {
  readonly register: Uint8Array;
  readonly hello: Uint8Array;
  readonly challenge: Uint8Array;
}

export interface ProofTags {
  /** Of the Proof frame. */
  readonly client: Uint8Array;
  /** Of the Ready frame. */
  readonly relay: Uint8Array;
}

const concat = (...parts: readonly Uint8Array[]): Uint8Array => {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
};
const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);
const isZero = (bytes: Uint8Array): boolean => bytes.every((byte) => byte === 0);

/**
 * Each end calls this with its own private keys and the other's public ones: a client twice its WireGuard key with the
 * Challenge's two keys, a relay its two keys with the registered one. @throws FrameError when an exchange gives zero, that
 * is, when the other end's key is one of low order
 */
export const proofTags = async <PrivateKey>(
  crypto: ProofCrypto<PrivateKey>,
  exchanges: readonly { readonly privateKey: PrivateKey; readonly publicKey: Uint8Array }[],
  { register, hello, challenge }: Transcript,
): Promise<ProofTags> => {
  const shared: Uint8Array[] = [];
  for (const { privateKey, publicKey } of exchanges) {
    const secret = await crypto.x25519(privateKey, publicKey);
    if (secret.length !== KEY_BYTES || isZero(secret))
      throw new FrameError('the exchange with the other end’s key gives zero: it is a point of low order, no key');
    shared.push(secret);
  }
  const digest = crypto.sha256(concat(register, hello, challenge));
  const key = crypto.hkdfSha256({ ikm: concat(...shared), salt: digest, info: ascii(PROOF_INFO), length: 32 });
  return {
    client: crypto.hmacSha256(key, concat(ascii('client'), digest)),
    relay: crypto.hmacSha256(key, concat(ascii('relay'), digest)),
  };
};

/** Takes the same time whatever differs. */
export const sameTag = (a: Uint8Array, b: Uint8Array): boolean => {
  let difference = a.length ^ b.length;
  for (let index = 0; index < a.length; index++) difference |= a[index]! ^ (b[index] ?? 0);
  return difference === 0;
};
