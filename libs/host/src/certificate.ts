import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';

import type { Logger } from '@unbounded/telemetry';

const LOOK_MS = 1000;

export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** PEM, and the context that they make: servers take one or the other. */
export interface TlsCertificate {
  readonly cert: string;
  readonly key: string;
  readonly secureContext: SecureContext;
}

/**
 * The certificate of these files, read again when one of them has changed (looked at once a second, when a
 * connection asks). A new one that cannot be read is logged, and the old one stays. @throws Error when the first reading fails
 */
export const certificateSource = ({ cert, key }: CertificateFiles, logger: Logger): (() => TlsCertificate) => {
  const changedAt = (): string => [cert, key].map((file) => statSync(file).mtimeMs).join();
  const read = (): TlsCertificate => {
    const pem = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
    return { ...pem, secureContext: createSecureContext(pem) };
  };
  let version = changedAt();
  let certificate = read();
  let lookedAt = performance.now();
  return () => {
    const now = performance.now();
    if (now - lookedAt < LOOK_MS) return certificate;
    lookedAt = now;
    try {
      const current = changedAt();
      if (current !== version) certificate = read();
      version = current;
    } catch (error) {
      logger.error({ err: error, cert, key }, 'cannot read the certificate; keeping the previous one');
    }
    return certificate;
  };
};
