import type { Logger } from '@unbounded/telemetry';
import { type Command, findProcess, type KeptProcess, startProcess } from './process.ts';

/** Milliseconds. A process that keeps dying is given longer and longer rests. */
const FIRST_REST_MS = 50;
const LONGEST_REST_MS = 5000;
/** After this life a process counts as healthy, and its next death as the first. */
const HEALTHY_MS = 10_000;

interface Kept {
  readonly process: KeptProcess;
  readonly startedMs: number;
  readonly restMs: number;
  /** It needs no more than to run: set by whoever sets processes up. Those that were found are. */
  isSetUp: boolean;
}

/** Keeps processes running by their names; all of its state is found again by a successor. */
export interface Supervisor {
  /** Looks once: starts it when it does not run. Undefined: it rests. `nowMs` never goes back. @throws Error when it cannot be run */
  tend(name: string, command: Command, nowMs: number): Promise<Kept | undefined>;
  /** @throws Error when its note cannot be removed; the process is ended all the same */
  end(name: string): void;
  /** Of all that were tended and not ended. */
  names(): string[];
  running(): string[];
}

export const createSupervisor = (pidsDir: string, logger: Logger): Supervisor => {
  const kept = new Map<string, Kept>();
  const resting = new Map<string, { untilMs: number; restMs: number }>();

  const find = (name: string, nowMs: number): Kept | undefined => {
    const found = findProcess(pidsDir, name);
    if (!found) return undefined;
    logger.info({ process: name, pid: found.pid }, 'found a running process');
    return { process: found, startedMs: nowMs, restMs: FIRST_REST_MS, isSetUp: true };
  };

  const start = async (name: string, command: Command, nowMs: number): Promise<Kept | undefined> => {
    const rest = resting.get(name);
    if (rest && nowMs < rest.untilMs) return undefined;
    const started = await startProcess(pidsDir, name, command, (error) =>
      logger.error(
        { process: name, error: error.message },
        'cannot note the process: a restarted keeper will not find it',
      ),
    );
    logger.info({ process: name, pid: started.pid }, 'started');
    return { process: started, startedMs: nowMs, restMs: rest?.restMs ?? FIRST_REST_MS, isSetUp: false };
  };

  const noteDeath = (name: string, entry: Kept, nowMs: number): void => {
    const lived = nowMs - entry.startedMs;
    const restMs = lived > HEALTHY_MS ? FIRST_REST_MS : Math.min(entry.restMs * 2, LONGEST_REST_MS);
    logger.warn({ process: name, livedMs: lived, restMs }, 'the process ended');
    kept.delete(name);
    resting.set(name, { untilMs: lived > HEALTHY_MS ? nowMs : nowMs + restMs, restMs });
  };

  return {
    async tend(name, command, nowMs) {
      const entry = kept.get(name);
      if (entry && !entry.process.isAlive()) noteDeath(name, entry, nowMs);
      if (kept.has(name)) return kept.get(name);
      const fresh = find(name, nowMs) ?? (await start(name, command, nowMs));
      if (fresh) kept.set(name, fresh);
      return fresh;
    },
    end(name) {
      const entry = kept.get(name);
      if (!entry) return;
      kept.delete(name);
      logger.info({ process: name }, 'ended: its unit is gone');
      entry.process.end();
    },
    names: () => [...kept.keys()],
    running: () => [...kept].filter(([, { process }]) => process.isAlive()).map(([name]) => name),
  };
};
