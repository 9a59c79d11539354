import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';

/**
 * Failures of files that the agent keeps (a full disk, a read-only file system, a broken disk). They never stop the data
 * path: what could not be written stays in memory, is reported, and is written later.
 */
export interface StateFaults {
  /**
   * Runs a write of the file. A failure is logged once, reported by `problems`, and repeated by `retry`.
   * @returns whether it worked
   */
  attempt(path: string, write: () => void): boolean;
  /** Nothing is left to be written to the file. */
  settle(path: string): void;
  /** The file is there and holds nothing usable: it counts as absent. */
  unreadable(path: string, error: Error): void;
  /** Repeats the last failed write of each file. */
  retry(): void;
  problems(): readonly Problem[];
  /** Told when a file cannot be written any more, and when it is again. */
  onChange(listener: () => void): void;
  /** Counts the files of all threads of the agent whose content could not be written. */
  measure(problems: readonly { readonly reason: string }[]): void;
}

const STATE_NOT_WRITABLE = 'StateNotWritable';

const CAUSES: Readonly<Record<string, string>> = {
  ENOSPC: 'the file system is full: free space on it',
  EDQUOT: 'the quota is used up: raise it, or free space',
  EROFS: 'the file system is read-only: mount it writable',
  EACCES: 'access is denied: the agent needs to write there',
  EIO: 'the disk failed: check it',
};

export const stateNotWritable = (path: string, error: Error): Problem => {
  const { code = '' } = error as NodeJS.ErrnoException;
  const cause = CAUSES[code] === undefined ? error.message : `${code}, ${CAUSES[code]}`;
  const message = `${path} cannot be written (${cause}); forwarding continues, and the write is retried; until then a restarted agent finds an older state`;
  return { reason: STATE_NOT_WRITABLE, message };
};

const createFileMetrics = (metrics: Metrics | undefined) => ({
  failures: metrics?.counter({
    name: 'unbounded_state_file_failures_total',
    help: 'Failed reads and writes of state files, by operation; retries included.',
    labels: ['operation'],
  }),
  unwritten: metrics?.gauge({
    name: 'unbounded_state_files_unwritten',
    help: 'State files whose latest content is in memory only because it could not be written.',
  }),
});

export interface StateFaultsOptions {
  readonly logger?: Logger;
  readonly metrics?: Metrics;
}

export const createStateFaults = ({ logger, metrics }: StateFaultsOptions = {}): StateFaults => {
  const failed = new Map<string, { readonly write: () => void; readonly error: Error }>();
  const { failures, unwritten } = createFileMetrics(metrics);
  const attempt: StateFaults['attempt'] = (path, write) => {
    try {
      write();
    } catch (cause) {
      const error = cause as Error;
      failures?.inc({ operation: 'write' });
      if (failed.get(path)?.error.message !== error.message)
        logger?.error({ path, error: error.message }, 'cannot write a state file; forwarding continues');
      failed.set(path, { write, error });
      return false;
    }
    if (failed.delete(path)) logger?.info({ path }, 'the state file is written again');
    return true;
  };
  let onChange = (): void => undefined;
  /** Each changes one file at most. */
  const noticed = <T>(work: () => T): T => {
    const before = failed.size;
    const result = work();
    if (failed.size !== before) onChange();
    return result;
  };
  return {
    attempt: (path, write) => noticed(() => attempt(path, write)),
    settle: (path) => noticed(() => void failed.delete(path)),
    unreadable(path, error) {
      failures?.inc({ operation: 'read' });
      logger?.warn({ path, error: error.message }, 'a state file is unusable and counts as absent');
    },
    retry() {
      for (const [path, { write }] of failed) noticed(() => attempt(path, write));
    },
    problems: () => [...failed].map(([path, { error }]) => stateNotWritable(path, error)),
    onChange: (listener) => void (onChange = listener),
    measure: (problems) => unwritten?.set(problems.filter(({ reason }) => reason === STATE_NOT_WRITABLE).length),
  };
};
