import { X509Certificate } from 'node:crypto';

import { createAuthority, issueCertificate } from './authority.ts';
import { certificatesOf, type TlsMaterial } from './tls-secret.ts';

const DAY_MS = 86_400_000;
/** Before the end of the CA: new serving certificates are of the next CA, and clients have a year to have both. */
const CA_RENEWAL_MS = 365 * DAY_MS;
const SERVING_RENEWAL_MS = 30 * DAY_MS;
const SERVING_MS = 90 * DAY_MS;

const endsWithin = (cert: string, ms: number, now: Date): boolean =>
  new X509Certificate(cert).validToDate.getTime() - now.getTime() < ms;

/** Made by a replica whose clock was ahead: nobody takes it yet. */
const isToCome = (cert: string, now: Date): boolean => new X509Certificate(cert).validFromDate > now;

const hasNames = (cert: string, names: readonly string[]): boolean => {
  const certificate = new X509Certificate(cert);
  return names.every((name) => certificate.checkHost(name, { subject: 'never' }) !== undefined);
};

/** Material for the first time. */
export const createMaterial = async (names: readonly string[], now: Date): Promise<TlsMaterial> => {
  const ca = await createAuthority(names[0] ?? 'localhost', now);
  return { ca, serving: await issueCertificate(ca, names, now), bundle: ca.cert };
};

/** Trusted for as long as they are valid. */
const stillTrusted = (bundle: string, now: Date): readonly string[] =>
  certificatesOf(bundle).filter((cert) => !endsWithin(cert, 0, now));

/**
 * What follows this material; undefined: it is still good. A CA is replaced in two steps: the next one is published beside it,
 * and signs from the next serving certificate on (two months later), which clients can verify by then.
 */
export const renewed = async (
  material: TlsMaterial,
  names: readonly string[],
  now: Date,
): Promise<TlsMaterial | undefined> => {
  const { ca, serving, bundle } = material;
  const isCaOld = endsWithin(ca.cert, CA_RENEWAL_MS, now) || isToCome(ca.cert, now);
  const isServingOld =
    endsWithin(serving.cert, SERVING_RENEWAL_MS, now) || isToCome(serving.cert, now) || !hasNames(serving.cert, names);
  const trusted = stillTrusted(bundle, now);
  if (!isCaOld && !isServingOld && trusted.length === certificatesOf(bundle).length) return undefined;
  const nextCa = isCaOld ? await createAuthority(names[0] ?? 'localhost', now) : ca;
  // Nobody has renewed for so long that the present CA ends before what it would sign.
  const signer = endsWithin(ca.cert, SERVING_MS, now) || isToCome(ca.cert, now) ? nextCa : ca;
  return {
    ca: nextCa,
    bundle: isCaOld ? [nextCa.cert, ...trusted].join('\n') : trusted.join('\n'),
    serving: isServingOld ? await issueCertificate(signer, names, now) : serving,
  };
};
