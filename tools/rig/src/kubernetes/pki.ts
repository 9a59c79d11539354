import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../machine/command.ts';

/** The lab's certificate authority and what it signs, by openssl(1): P-256 keys, ten years, files below one folder. */

const DAYS = '3650';

export interface Pki {
  readonly dir: string;
  /** Paths of a signed certificate and its key. */
  file(name: string, kind: 'crt' | 'key'): string;
}

const openssl = (...args: string[]): string => run(['openssl', ...args]);

/** Makes the authority and the key that signs ServiceAccount tokens, once. */
export const openPki = (dir: string): Pki => {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const file = (name: string, kind: 'crt' | 'key'): string => join(dir, `${name}.${kind}`);
  if (!existsSync(file('ca', 'crt'))) {
    openssl(
      'req',
      '-x509',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-days',
      DAYS,
      '-subj',
      '/CN=unbounded-lab',
      '-addext',
      'keyUsage=critical,keyCertSign,cRLSign,digitalSignature',
      '-keyout',
      file('ca', 'key'),
      '-out',
      file('ca', 'crt'),
    );
    openssl('genrsa', '-out', file('sa', 'key'), '2048');
    openssl('rsa', '-in', file('sa', 'key'), '-pubout', '-out', join(dir, 'sa.pub'));
  }
  return { dir, file };
};

/** Signs a certificate for a client or server; an existing one is kept. `names` are SANs such as `IP:10.0.0.1`. */
export const signCertificate = (pki: Pki, name: string, subject: string, names: readonly string[] = []): void => {
  if (existsSync(pki.file(name, 'crt'))) return;
  const request = join(pki.dir, `${name}.csr`);
  const extensions = join(pki.dir, `${name}.ext`);
  const san = names.length > 0 ? `subjectAltName=${names.join(',')}\n` : '';
  writeFileSync(extensions, `extendedKeyUsage=serverAuth,clientAuth\nkeyUsage=critical,digitalSignature\n${san}`);
  openssl(
    'req',
    '-new',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    subject,
    '-keyout',
    pki.file(name, 'key'),
    '-out',
    request,
  );
  openssl(
    'x509',
    '-req',
    '-in',
    request,
    '-CA',
    pki.file('ca', 'crt'),
    '-CAkey',
    pki.file('ca', 'key'),
    '-CAcreateserial',
    '-days',
    DAYS,
    '-extfile',
    extensions,
    '-out',
    pki.file(name, 'crt'),
  );
};

/** Who presents itself in a kubeconfig: a certificate of ours, or a token in a file that is renewed. */
export type Credential = { readonly certificate: string } | { readonly tokenFile: string };

/** The text of a kubeconfig (JSON is YAML). */
export const kubeconfigOf = (pki: Pki, server: string, credential: Credential): string => {
  const base64 = (path: string): string => readFileSync(path).toString('base64');
  const user =
    'tokenFile' in credential
      ? { tokenFile: credential.tokenFile }
      : {
          'client-certificate-data': base64(pki.file(credential.certificate, 'crt')),
          'client-key-data': base64(pki.file(credential.certificate, 'key')),
        };
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'lab', cluster: { server, 'certificate-authority-data': base64(pki.file('ca', 'crt')) } }],
    users: [{ name: 'lab', user }],
    contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'lab' } }],
    'current-context': 'lab',
  });
};
