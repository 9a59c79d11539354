import { createPublicKey, createPrivateKey, X509Certificate } from 'node:crypto';

import type { Secret } from '@unbounded/kube';

import type { PemPair } from './authority.ts';

/** What replicas share. */
export interface TlsMaterial {
  readonly serving: PemPair;
  readonly ca: PemPair;
  /** CA certificates that clients have to trust, PEM one after the other: the present one first. */
  readonly bundle: string;
}

/** The object cannot be used, and is not ours to overwrite. */
export class ForeignObjectError extends Error {
  override readonly name = 'ForeignObjectError';
}

/** On what we made: without it a Secret of this name is somebody else's. */
export const MADE_BY = 'net.unbounded-cloud.io/made-by';
export const MAKER = 'status-aggregator';
const KEYS = ['tls.crt', 'tls.key', 'ca.crt', 'ca.key'] as const;

export interface ObjectPlace {
  readonly namespace: string;
  readonly name: string;
}

const encode = (text: string): string => Buffer.from(text).toString('base64');

/** `before` is the Secret that is replaced: its resourceVersion is the precondition. */
export const secretOf = ({ namespace, name }: ObjectPlace, material: TlsMaterial, before?: Secret): Secret => {
  const { serving, ca, bundle } = material;
  const texts = { 'tls.crt': serving.cert, 'tls.key': serving.key, 'ca.crt': bundle, 'ca.key': ca.key };
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: before?.metadata ?? { name, namespace, annotations: { [MADE_BY]: MAKER } },
    type: 'kubernetes.io/tls',
    data: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, encode(text)])),
  };
};

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

export const certificatesOf = (bundle: string): readonly string[] => bundle.match(CERTIFICATE) ?? [];

/** @throws Error when they do not belong together */
const checkPair = ({ cert, key }: PemPair): X509Certificate => {
  const certificate = new X509Certificate(cert);
  if (!certificate.publicKey.equals(createPublicKey(createPrivateKey(key)))) {
    throw new Error('certificate and key do not belong together');
  }
  return certificate;
};

const read = (data: Readonly<Record<string, string>>): TlsMaterial => {
  const text = (key: (typeof KEYS)[number]): string => {
    const value = data[key];
    if (!value) throw new Error(`${key} is missing`);
    return Buffer.from(value, 'base64').toString('utf8');
  };
  const bundle = text('ca.crt');
  const ca = { cert: certificatesOf(bundle)[0] ?? '', key: text('ca.key') };
  const serving = { cert: text('tls.crt'), key: text('tls.key') };
  const issuer = checkPair(ca);
  if (!issuer.ca) throw new Error('ca.crt is no CA');
  const leaf = checkPair(serving);
  // Of the previous CA, while one is being replaced.
  const isSigned = certificatesOf(bundle).some((cert) => leaf.verify(new X509Certificate(cert).publicKey));
  if (!isSigned) throw new Error('tls.crt is not signed by ca.crt');
  return { serving, ca, bundle };
};

/** @throws ForeignObjectError that names the Secret and what is wrong, and quotes no key */
export const materialOf = (secret: Secret): TlsMaterial => {
  const { namespace, name, annotations } = secret.metadata;
  const about = `Secret ${namespace}/${name}`;
  const advice = 'delete it to have a new one made, or choose another name';
  if (secret.type !== 'kubernetes.io/tls' || annotations?.[MADE_BY] !== MAKER) {
    throw new ForeignObjectError(`${about} was not made by ${MAKER}, and is left as it is: ${advice}`);
  }
  try {
    return read(secret.data ?? {});
  } catch (error) {
    throw new ForeignObjectError(`${about} is damaged (${(error as Error).message}), and is left as it is: ${advice}`);
  }
};
