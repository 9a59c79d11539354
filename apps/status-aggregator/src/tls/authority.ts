import type { webcrypto } from 'node:crypto';

// oxlint-disable-next-line import/no-unassigned-import -- @peculiar/x509 asks for it when it is loaded
import 'reflect-metadata';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

/** Certificate and PKCS #8 private key, PEM. */
export interface PemPair {
  readonly cert: string;
  readonly key: string;
}

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
const SERVING_DAYS = 90;
/** Clocks of nodes may be behind ours. */
const BACKDATED_MS = 300_000;

const newKeys = (): Promise<webcrypto.CryptoKeyPair> => crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);

const pemKey = async (key: webcrypto.CryptoKey): Promise<string> =>
  PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');

const readKey = (pem: string): Promise<webcrypto.CryptoKey> =>
  crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(pem), ALGORITHM, false, ['sign']);

const validity = (now: Date, days: number) => ({
  notBefore: new Date(now.getTime() - BACKDATED_MS),
  notAfter: new Date(now.getTime() + days * DAY_MS),
});

/** A serial number of 127 random bits, as RFC 5280 4.1.2.2 allows. */
const newSerial = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0]! & 0x7f) | 0x40; // positive, and never empty
  return Buffer.from(bytes).toString('hex');
};

/** A CA that signs for ten years. Its name has its number: while one is being replaced, both are in one bundle. */
export const createAuthority = async (name: string, now: Date): Promise<PemPair> => {
  const keys = await newKeys();
  const serialNumber = newSerial();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber,
    name: [{ CN: [`${name} CA ${serialNumber.slice(0, 8)}`] }],
    ...validity(now, CA_DAYS),
    keys,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: certificate.toString('pem'), key: await pemKey(keys.privateKey) };
};

/** A serving certificate of 90 days. */
export const issueCertificate = async (ca: PemPair, names: readonly string[], now: Date): Promise<PemPair> => {
  const issuer = new X509Certificate(ca.cert);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: [{ CN: [names[0] ?? 'localhost'] }],
    issuer: issuer.subjectName,
    ...validity(now, SERVING_DAYS),
    publicKey: keys.publicKey,
    signingKey: await readKey(ca.key),
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value }))),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { cert: certificate.toString('pem'), key: await pemKey(keys.privateKey) };
};
