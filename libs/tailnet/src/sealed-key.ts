import { Aes256Gcm, CipherSuite, DhkemX25519HkdfSha256, HkdfSha256 } from '@hpke/core';

/**
 * How the key by which a device logs in gets from the registrar to its node, through an object that others can read: HPKE (RFC 9180)
 * to a key pair that the node makes for the one purpose, DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.
 */

const suite = new CipherSuite({
  kem: new DhkemX25519HkdfSha256(),
  kdf: new HkdfSha256(),
  aead: new Aes256Gcm(),
});
/** Bytes of the encapsulated secret, which come before the ciphertext. */
const SECRET_BYTES = 32;
const LONGEST_SEALED_BYTES = 768;

const bytesOf = (text: string): ArrayBuffer => {
  const bytes = new Uint8Array(Buffer.from(text, 'base64'));
  return bytes.buffer;
};
const textOf = (...parts: readonly ArrayBuffer[]): string =>
  Buffer.concat(parts.map((part) => Buffer.from(part))).toString('base64');
/** A sealed key opens for the pod only that it was made for. */
const contextOf = (podUID: string): ArrayBuffer =>
  new TextEncoder().encode(`unbounded tailnet key v1 ${podUID}`).buffer;

export class SealedKeyError extends Error {
  override readonly name = 'SealedKeyError';
}

export interface KeyReceiver {
  /** Base64, 32 bytes: what {@link sealKey} takes. */
  readonly publicKey: string;
  /** @throws SealedKeyError when it was not sealed for this receiver and pod, or was changed */
  open(sealed: string, podUID: string): Promise<string>;
}

export const createKeyReceiver = async (): Promise<KeyReceiver> => {
  const pair = await suite.kem.generateKeyPair();
  const publicKey = textOf(await suite.kem.serializePublicKey(pair.publicKey));
  return {
    publicKey,
    open: async (sealed, podUID) => {
      const bytes = bytesOf(sealed);
      if (bytes.byteLength <= SECRET_BYTES || bytes.byteLength > LONGEST_SEALED_BYTES)
        throw new SealedKeyError(
          `the sealed key has ${bytes.byteLength} bytes: must be ${SECRET_BYTES + 1} to ${LONGEST_SEALED_BYTES}`,
        );
      try {
        const [enc, ciphertext] = [bytes.slice(0, SECRET_BYTES), bytes.slice(SECRET_BYTES)];
        const context = await suite.createRecipientContext({ recipientKey: pair, enc, info: contextOf(podUID) });
        return new TextDecoder().decode(await context.open(ciphertext));
      } catch (cause) {
        throw new SealedKeyError(`the sealed key is for another public key than ${publicKey}, or another pod`, {
          cause,
        });
      }
    },
  };
};

/** @param publicKey of the receiver. @throws SealedKeyError when it is none */
export const sealKey = async (key: string, publicKey: string, podUID: string): Promise<string> => {
  try {
    const recipientPublicKey = await suite.kem.deserializePublicKey(bytesOf(publicKey));
    const context = await suite.createSenderContext({ recipientPublicKey, info: contextOf(podUID) });
    const ciphertext = await context.seal(new TextEncoder().encode(key).buffer);
    return textOf(context.enc, ciphertext);
  } catch (cause) {
    throw new SealedKeyError(`${JSON.stringify(publicKey)} is no X25519 public key of 32 bytes in base64`, { cause });
  }
};
