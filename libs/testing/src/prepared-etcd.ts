import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { assetsFolder } from './assets.ts';

/**
 * What an API server writes at its first start (roles, namespaces, priority levels), kept on the machine for the next ones: that is half of
 * the processor time of a start.
 */

const kept = (): string => join(assetsFolder(), 'etcd-data');

/** Of the programs and of what the API server is started with; undefined: they were not built here, and may be any. */
const versionOf = (flags: readonly string[]): string | undefined => {
  const built = ['kubernetes', 'etcd'].map((program) => join(assetsFolder(), 'bin', `.${program}.built`));
  if (!built.every((file) => existsSync(file))) return undefined;
  const texts = built.map((file) => readFileSync(file, 'utf8'));
  return createHash('sha256')
    .update([...texts, ...flags].join('\n'))
    .digest('hex')
    .slice(0, 16);
};

/** etcd allocates 64 MiB for its log, most of which is empty. */
const copy = (from: string, to: string): void =>
  void execFileSync('cp', ['--archive', '--sparse=always', '--no-target-directory', from, to]);

/** Makes the folder, as an API server of this version leaves it. @returns false: none is kept yet */
export const copyPreparedEtcd = (folder: string, flags: readonly string[]): boolean => {
  const version = versionOf(flags);
  if (version === undefined || !existsSync(join(kept(), version))) return false;
  copy(join(kept(), version), folder);
  return true;
};

/** Keeps the folder of an etcd that has ended, and that of no other version. */
export const keepPreparedEtcd = (folder: string, flags: readonly string[]): void => {
  const version = versionOf(flags);
  if (version === undefined) return;
  mkdirSync(kept(), { recursive: true });
  const beside = mkdtempSync(join(kept(), '.new-'));
  copy(folder, beside);
  try {
    renameSync(beside, join(kept(), version));
  } catch {
    rmSync(beside, { recursive: true }); // another process was first
  }
  for (const name of readdirSync(kept()))
    if (name !== version && !name.startsWith('.new-')) rmSync(join(kept(), name), { recursive: true, force: true });
};
