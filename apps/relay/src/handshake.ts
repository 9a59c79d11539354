import { randomBytes } from 'node:crypto';

import {
  ALL_CAPABILITIES,
  encodeExtension,
  type Hello,
  KEY_BYTES,
  proofTags,
  RELAY_NONCE_BYTES,
  sameTag,
  VERSION,
} from '@unbounded/relay-protocol';

import { generateKeyPair, type KeyPair, platformCrypto } from './platform-crypto.ts';

/** Making a key pair costs as much as a proof, so connections of half a minute share one; their nonces differ. */
const EPHEMERAL_MS = 30_000;
/** Proofs being checked at the same time, and those that may wait: a flood of them must not take the processor. */
const AT_ONCE = 4;
const MOST_WAITING = 1024;

/** What is kept of a connection between Challenge and Proof. */
export interface Pending {
  readonly register: Uint8Array;
  readonly hello: Uint8Array;
  readonly challenge: Uint8Array;
  readonly capabilities: number;
  readonly ephemeral: KeyPair;
  readonly expiresAt: number;
}

/** `refused`: the tag is wrong; `busy`: too many proofs wait. */
type Verdict = { readonly kind: 'proven'; readonly readyTag: Uint8Array } | { readonly kind: 'refused' | 'busy' };

export interface Verifier {
  /** `hello` and `register` are kept: they must be copies. */
  challenge(frames: { register: Uint8Array; helloFrame: Uint8Array; hello: Hello }, now: number): Pending;
  verify(pending: Pending, key: Uint8Array, tag: Uint8Array): Promise<Verdict>;
}

export interface VerifierOptions {
  /** The relay's own key, which clients may know beforehand. */
  readonly staticKey: KeyPair | undefined;
  /** Time from Challenge to Proof. */
  readonly expiresInMs: number;
}

/** Checks that clients have the private keys of what they register (`libs/relay-protocol`, proof.ts). */
export const createVerifier = ({ staticKey, expiresInMs }: VerifierOptions): Verifier => {
  let ephemeral = generateKeyPair();
  let madeAt = performance.now();
  let running = 0;
  const waiting: (() => void)[] = [];
  const slot = async (): Promise<void> => {
    if (running >= AT_ONCE) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
  };
  const free = (): void => {
    const next = waiting.shift();
    if (next) next();
    else running--;
  };
  return {
    challenge: ({ register, helloFrame, hello }, now) => {
      if (now - madeAt > EPHEMERAL_MS) {
        ephemeral = generateKeyPair();
        madeAt = now;
      }
      const capabilities = (hello.capabilities & ALL_CAPABILITIES) >>> 0;
      const challenge = encodeExtension({
        kind: 'challenge',
        version: VERSION,
        capabilities,
        ephemeralKey: ephemeral.publicKey,
        relayKey: staticKey?.publicKey ?? new Uint8Array(KEY_BYTES),
        nonce: randomBytes(RELAY_NONCE_BYTES),
        expiresInMs,
      });
      return { register, hello: helloFrame, challenge, capabilities, ephemeral, expiresAt: now + expiresInMs };
    },
    verify: async (pending, key, tag) => {
      if (waiting.length >= MOST_WAITING) return { kind: 'busy' };
      await slot();
      try {
        const own = [pending.ephemeral, ...(staticKey ? [staticKey] : [])];
        const exchanges = own.map(({ privateKey }) => ({ privateKey, publicKey: key }));
        const tags = await proofTags(platformCrypto, exchanges, pending);
        return sameTag(tags.client, tag) ? { kind: 'proven', readyTag: tags.relay } : { kind: 'refused' };
      } catch {
        return { kind: 'refused' }; // a key of low order, at which the platform throws
      } finally {
        free();
      }
    },
  };
};
