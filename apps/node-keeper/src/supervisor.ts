import type { Logger } from '@unbounded/telemetry';
import { type Command, findProcess, forgetProcess, type KeptProcess, notedProcesses, startProcess } from './process.ts';

/** Milliseconds. A process that keeps dying is given longer and longer rests. */
const FIRST_REST_MS = 50;
const LONGEST_REST_MS = 5000;
/** After this life a process counts as healthy, and its next death as the first. */
const HEALTHY_MS = 10_000;
/** One that was asked to end is killed after this. */
const END_WITHIN_MS = 5000;

interface Kept {
  readonly process: KeptProcess;
  readonly startedMs: number;
  readonly restMs: number;
  /** It needs no more than to run: set by whoever sets processes up. Those that were found are. */
  isSetUp: boolean;
}

/** Keeps processes running by their names; all of its state is found again by a successor. */
export interface Supervisor {
  /**
   * Looks once: starts it when it does not run. Undefined: it rests, or one that was asked to end is not gone yet. `nowMs` never goes back.
   * @throws Error when it cannot be run
   */
  tend(name: string, command: Command, nowMs: number): Promise<Kept | undefined>;
  /** Finds all processes of a keeper before this one, also those that nobody tends any more. */
  adopt(nowMs: number): void;
  /** Asks it to end, and later kills it. To be called until it returns true: it is gone, and forgotten. @throws Error when its note cannot be removed */
  stop(name: string, nowMs: number): boolean;
  /** Of all that were tended and not stopped. */
  names(): string[];
  running(): string[];
  /** How often it was started since this keeper was. */
  startsOf(name: string): number;
}

/** How long those that died rest. */
const createRests = () => {
  const resting = new Map<string, { untilMs: number; restMs: number }>();
  return {
    isOver: (name: string, nowMs: number): boolean => nowMs >= (resting.get(name)?.untilMs ?? -Infinity),
    /** Its rest before, and so that of its next death. */
    of: (name: string): number => resting.get(name)?.restMs ?? FIRST_REST_MS,
    /** @returns how long it rests */
    died(name: string, livedMs: number, formerMs: number, nowMs: number): number {
      const isHealthy = livedMs > HEALTHY_MS;
      const restMs = isHealthy ? FIRST_REST_MS : Math.min(formerMs * 2, LONGEST_REST_MS);
      resting.set(name, { untilMs: isHealthy ? nowMs : nowMs + restMs, restMs });
      return restMs;
    },
    names: () => resting.keys(),
    delete: (name: string) => resting.delete(name),
  };
};

const unnoted =
  (process: string, logger: Logger) =>
  ({ message: error }: Error): void =>
    logger.error({ process, error }, 'cannot note the process: a restarted keeper will not find it');

export const createSupervisor = (pidsDir: string, logger: Logger): Supervisor => {
  const kept = new Map<string, Kept>();
  const resting = createRests();
  const askedMs = new Map<string, number>();
  const starts = new Map<string, number>();

  const find = (name: string, nowMs: number): Kept | undefined => {
    const found = findProcess(pidsDir, name);
    if (!found) return undefined;
    logger.info({ process: name, pid: found.pid }, 'found a running process');
    return { process: found, startedMs: nowMs, restMs: FIRST_REST_MS, isSetUp: true };
  };

  const start = async (name: string, command: Command, nowMs: number): Promise<Kept | undefined> => {
    if (!resting.isOver(name, nowMs)) return undefined;
    const started = await startProcess(pidsDir, name, command, unnoted(name, logger)).catch((error: unknown) => {
      // As one that ended at once: a node without room for processes is asked for more of them ever more rarely.
      resting.died(name, 0, resting.of(name), nowMs);
      throw error;
    });
    starts.set(name, (starts.get(name) ?? 0) + 1);
    logger.info({ process: name, pid: started.pid }, 'started');
    return { process: started, startedMs: nowMs, restMs: resting.of(name), isSetUp: false };
  };

  const noteDeath = (name: string, entry: Kept, nowMs: number): void => {
    const livedMs = nowMs - entry.startedMs;
    const restMs = resting.died(name, livedMs, entry.restMs, nowMs);
    logger.warn({ process: name, livedMs, restMs }, 'the process ended');
    kept.delete(name);
  };

  const stop = (name: string, nowMs: number): boolean => {
    const process = kept.get(name)?.process;
    if (process?.isAlive()) {
      const asked = askedMs.get(name);
      if (asked === undefined) {
        askedMs.set(name, nowMs);
        logger.info({ process: name }, 'asked to end');
        process.signal('SIGTERM');
      } else if (nowMs - asked > END_WITHIN_MS) process.signal('SIGKILL');
      return false;
    }
    forgetProcess(pidsDir, name);
    for (const forgotten of [kept, resting, askedMs, starts]) forgotten.delete(name);
    return true;
  };

  return {
    async tend(name, command, nowMs) {
      if (askedMs.has(name) && !stop(name, nowMs)) return undefined;
      const entry = kept.get(name);
      if (entry && !entry.process.isAlive()) noteDeath(name, entry, nowMs);
      if (kept.has(name)) return kept.get(name);
      const fresh = find(name, nowMs) ?? (await start(name, command, nowMs));
      if (!fresh) return undefined;
      kept.set(name, fresh);
      return fresh;
    },
    adopt(nowMs) {
      for (const name of notedProcesses(pidsDir)) {
        const found = find(name, nowMs);
        if (found) kept.set(name, found);
      }
    },
    stop,
    names: () => [...new Set([...kept.keys(), ...resting.names()])],
    running: () => [...kept].filter(([, { process }]) => process.isAlive()).map(([name]) => name),
    startsOf: (name) => starts.get(name) ?? 0,
  };
};
