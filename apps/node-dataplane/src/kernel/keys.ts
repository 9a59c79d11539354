import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatePrivateKey, isKey, publicKeyOf } from '@unbounded/wireguard';

/** The node's WireGuard key pair on disk: private 0600, public 0644, folder 0700, as the design has them. */

export interface KeyPair {
  readonly privateKey: string;
  readonly publicKey: string;
}

const writeWhole = (file: string, text: string, mode: number): void => {
  writeFileSync(`${file}.new`, text, { mode });
  renameSync(`${file}.new`, file);
};

/** Reads the pair, or makes it when there is none. @throws Error when the file holds no key (it is never overwritten) */
export const loadOrCreateKeys = (folder: string): KeyPair => {
  const file = join(folder, 'server.priv');
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  if (!existsSync(file)) writeWhole(file, generatePrivateKey(), 0o600);
  const privateKey = readFileSync(file, 'utf8').trim();
  if (!isKey(privateKey))
    throw new Error(
      `${file} holds no WireGuard private key: remove it to have a new one made, or put one there as "wg genkey" prints it`,
    );
  chmodSync(file, 0o600);
  const publicKey = publicKeyOf(privateKey);
  const publicFile = join(folder, 'server.pub');
  if (!existsSync(publicFile) || readFileSync(publicFile, 'utf8').trim() !== publicKey)
    writeWhole(publicFile, publicKey, 0o644);
  return { privateKey, publicKey };
};
