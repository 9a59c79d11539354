import { readFileSync } from 'node:fs';
import { PEER_STATES, type PeerState, type ReachedSites } from '@unbounded/health';
import { replaceFileAsync } from '@unbounded/state-files';
import type { Problem } from '@unbounded/topology';
import { isNumber, isRecordOf, stateFile } from '../../state/state-file.ts';
import { stateNotWritable } from '../../state/state-faults.ts';
import { CLOCKS, type Clocks, nextNonce } from '../nonce.ts';

/** What must outlive the process: a healthy path does not begin as New again, and nonces grow with every start. */

export interface Verdict {
  readonly state: PeerState;
  /** The peer may not carry on credit any more. */
  readonly graceOver: boolean;
  readonly sites?: ReachedSites;
  /** Echoes through the peer do not come back. Absent: they do, or none are sent. */
  readonly forwards?: false;
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
  /**
   * Of this process; greater than of any before it, also when the clock went back, and, until the next reboot, when the file
   * could not be written.
   */
  readonly nonce: bigint;
  /** Soon and not on this thread's time, where it differs: `peers` is asked when it is written, once for several changes. */
  save(peers: () => ReadonlyMap<string, Verdict>): void;
  /** The file cannot be written: it is tried again every two seconds, and at once with the next save. */
  problems(): readonly Problem[];
  /** No write is under way. */
  settled(): Promise<void>;
}

const isVerdict = (value: unknown): value is Verdict => {
  const verdict = value as Partial<Verdict> | null;
  return (
    typeof verdict === 'object' &&
    verdict !== null &&
    PEER_STATES.includes(verdict.state!) &&
    typeof verdict.graceOver === 'boolean' &&
    [undefined, false].includes(verdict.forwards) &&
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

const RETRY_MS = 2000;

/**
 * Writes the latest text, one write at a time and not on this thread's time; what failed is tried again, and the failure is
 * kept until a write succeeds.
 */
const createWriter = (path: string, retryMs: number) => {
  let next: (() => string) | undefined;
  let writing: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;
  let written: string | undefined;
  let failure: Error | undefined;
  const writeAll = async (): Promise<void> => {
    while (next) {
      const latest = next;
      const text = latest();
      next = undefined;
      try {
        if (text !== written) await replaceFileAsync(path, text, { mode: 0o600 });
      } catch (error) {
        next ??= latest;
        throw error;
      }
      [written, failure] = [text, undefined];
    }
  };
  const start = (): void => {
    clearTimeout(retry);
    writing ??= writeAll()
      .catch((error: unknown) => {
        failure = error as Error;
        retry = setTimeout(start, retryMs).unref();
      })
      .then(() => (writing = undefined));
  };
  return {
    write(text: () => string): void {
      next = text;
      start();
    },
    problems: (): Problem[] => (failure ? [stateNotWritable(path, failure)] : []),
    settled: async (): Promise<void> => {
      while (writing) await writing;
    },
  };
};

export const openVerdictFile = (path: string, clocks: Clocks = CLOCKS, retryMs = RETRY_MS): VerdictFile => {
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  const before = stateFile(path, isSaved).read();
  const known = new Map(before?.bootId === bootId ? Object.entries(before.peers) : []);
  const nonce = nextNonce(BigInt(before?.nonce ?? 0), clocks);
  const textOf = (peers: ReadonlyMap<string, Verdict>): string =>
    JSON.stringify({ bootId, nonce: String(nonce), peers: Object.fromEntries(peers) } satisfies Saved);
  const writer = createWriter(path, retryMs);
  writer.write(() => textOf(known));
  return {
    known,
    nonce,
    save: (peers) => writer.write(() => textOf(peers())),
    problems: () => writer.problems(),
    settled: () => writer.settled(),
  };
};
