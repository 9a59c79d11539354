import { readFileSync } from 'node:fs';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PEER_STATES, type PeerState, type ReachedSites } from '@unbounded/health';
import { isNumber, isRecordOf, stateFile } from '../kernel/state-file.ts';

/** What must outlive the process: a healthy path does not begin as New again, and nonces grow with every start. */

export interface Verdict {
  readonly state: PeerState;
  /** The peer may not carry on credit any more. */
  readonly graceOver: boolean;
  readonly sites?: ReachedSites;
}

interface Saved {
  /** Verdicts of before a reboot say nothing any more. */
  readonly bootId: string;
  /** Decimal. */
  readonly nonce: string;
  readonly peers: Readonly<Record<string, Verdict>>;
}

export interface VerdictFile {
  /** By peer id. */
  readonly known: ReadonlyMap<string, Verdict>;
  /** Of this process; greater than of any before it, also when the clock went back. */
  readonly nonce: bigint;
  /** Soon and not on this thread's time, where it differs: `peers` is asked when it is written, once for several changes. */
  save(peers: () => ReadonlyMap<string, Verdict>): void;
  /** All that was saved is in the file. */
  settled(): Promise<void>;
}

const isVerdict = (value: unknown): value is Verdict => {
  const verdict = value as Partial<Verdict> | null;
  return (
    typeof verdict === 'object' &&
    verdict !== null &&
    PEER_STATES.includes(verdict.state!) &&
    typeof verdict.graceOver === 'boolean' &&
    (verdict.sites === undefined || (Array.isArray(verdict.sites.hashes) && verdict.sites.hashes.every(isNumber)))
  );
};

const isSaved = (value: unknown): value is Saved => {
  const saved = value as Partial<Saved> | null;
  return (
    typeof saved === 'object' &&
    saved !== null &&
    typeof saved.bootId === 'string' &&
    /^\d{1,20}$/.test(saved.nonce ?? '') &&
    isRecordOf(isVerdict)(saved.peers)
  );
};

const NS_PER_MS = 1_000_000n;

export const openVerdictFile = (path: string): VerdictFile => {
  const file = stateFile(path, isSaved);
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const before = file.read();
  const known = new Map(before?.bootId === bootId ? Object.entries(before.peers) : []);
  const now = BigInt(Date.now()) * NS_PER_MS;
  const previous = BigInt(before?.nonce ?? 0);
  const nonce = now > previous ? now : previous + 1n;
  const textOf = (peers: ReadonlyMap<string, Verdict>): string =>
    JSON.stringify({ bootId, nonce: String(nonce), peers: Object.fromEntries(peers) } satisfies Saved);
  file.write({ bootId, nonce: String(nonce), peers: Object.fromEntries(known) });

  let next: (() => ReadonlyMap<string, Verdict>) | undefined;
  let writing: Promise<void> | undefined;
  let written: string | undefined;
  const writeAll = async (): Promise<void> => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    while (next) {
      const text = textOf(next());
      next = undefined;
      if (text === written) continue;
      await writeFile(`${path}.new`, text, { mode: 0o600 });
      await rename(`${path}.new`, path);
      written = text;
    }
  };
  return {
    known,
    nonce,
    save(peers) {
      next = peers;
      // A full disk costs nothing but the memory of verdicts.
      writing ??= writeAll()
        .catch(() => undefined)
        .finally(() => (writing = undefined));
    },
    settled: async () => {
      while (writing) await writing;
    },
  };
};
