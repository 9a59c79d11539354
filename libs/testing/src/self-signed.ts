import { execFileSync } from 'node:child_process';

export interface SelfSignedFiles {
  /** Paths of what is written (PEM); without one the key is thrown away. */
  readonly key?: string;
  readonly cert?: string;
  /** As openssl has them: `DNS:relay.example`, `IP:127.0.0.1`. */
  readonly altNames?: readonly string[];
}

/** Makes a self-signed certificate of two days with an ECDSA key (P-256), by openssl(1). @returns the certificate, where it has no path */
export const makeSelfSigned = (
  commonName: string,
  { key = '/dev/null', cert, altNames = [] }: SelfSignedFiles = {},
): string => {
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key];
  const names = altNames.length === 0 ? [] : ['-addext', `subjectAltName=${altNames.join(',')}`];
  const out = cert === undefined ? [] : ['-out', cert];
  return execFileSync(
    'openssl',
    ['req', '-x509', '-days', '2', ...newKey, '-subj', `/CN=${commonName}`, ...names, ...out],
    {
      encoding: 'utf8',
      stdio: 'pipe',
    },
  );
};
