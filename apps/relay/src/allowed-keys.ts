import { readFileSync, statSync } from 'node:fs';

import type { Logger } from '@unbounded/telemetry';

import { LARGEST_LIST_BYTES, parseAllowedKeys } from './allowed-keys.codec.ts';

/** The file is looked at this often: a stat, through the symbolic links by which Kubernetes replaces mounted files. */
const LOOK_MS = 500;

export interface AllowedKeys {
  /** Nobody is before the list has been read once. */
  has(key: Uint8Array): boolean;
  readonly size: number;
  /** It has been read once. */
  readonly isKnown: boolean;
  /** What is in the file now cannot be read: the list of before still holds. */
  readonly isStale: boolean;
  /** Calls when the list is another one. */
  follow(onChange: () => void): void;
  stop(): void;
}

/** Changes whenever the file does, also by a symbolic link that leads elsewhere. */
const versionOf = (file: string): string => {
  const { ino, mtimeMs, size } = statSync(file);
  if (size > LARGEST_LIST_BYTES) throw new Error(`has ${size} bytes: at most ${LARGEST_LIST_BYTES} are read`);
  return `${ino} ${mtimeMs} ${size}`;
};

/**
 * The keys of a file, read again when it changed and was the same at two looks: one that is written in place is empty, or
 * ends in the middle, for a moment, which would disconnect everybody that it does not list yet. A file that is missing or
 * cannot be read changes nothing: before the first reading nobody is on the list, afterwards everybody who was.
 */
export const followAllowedKeys = (file: string, logger: Logger): AllowedKeys => {
  let keys: ReadonlySet<string> | undefined;
  let version: string | undefined;
  let lastSeen: string | undefined;
  let problem: string | undefined;
  let timer: NodeJS.Timeout | undefined;
  const look = (): boolean => {
    try {
      const current = versionOf(file);
      if (current === version && problem === undefined) return false;
      const isStill = keys === undefined || current === lastSeen;
      lastSeen = current;
      if (!isStill) return false;
      const next = parseAllowedKeys(readFileSync(file, 'utf8'));
      lastSeen = versionOf(file);
      if (lastSeen !== current) return false;
      version = current;
      problem = undefined;
      const isSame = keys !== undefined && keys.size === next.size && keys.isSubsetOf(next);
      keys = next;
      return !isSame;
    } catch (error) {
      const { message } = error as Error;
      if (message !== problem) logger.error({ file, reason: message }, 'cannot read the list of allowed keys');
      problem = message;
      return false;
    }
  };
  look();
  return {
    has: (key) => keys?.has(Buffer.from(key.buffer, key.byteOffset, key.length).toString('base64')) ?? false,
    get size() {
      return keys?.size ?? 0;
    },
    get isKnown() {
      return keys !== undefined;
    },
    get isStale() {
      return problem !== undefined;
    },
    follow: (onChange) => {
      timer = setInterval(() => {
        if (look()) onChange();
      }, LOOK_MS).unref();
    },
    stop: () => clearInterval(timer),
  };
};
