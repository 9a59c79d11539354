import { setTimeout as delay } from 'node:timers/promises';

/** What an attacker tries, and how it is seen to have been in vain. */

/** How an attempt ends: refused by who was asked, dropped and counted, or without effect and told to the operator. */
type Outcome = 'rejected' | 'dropped' | 'reported';

export interface Attempt {
  readonly name: string;
  readonly expected: Outcome;
  /** Tries it. Returns the evidence of the expected outcome. @throws when there is none */
  run(): Promise<string>;
  /** Puts back what the attempt changed of the attacker's own. */
  undo?(): Promise<void>;
}

export interface Tried {
  readonly name: string;
  readonly expected: Outcome;
  /** Since the first attempt began: beside what flows lost, and when. */
  readonly atSeconds: number;
  readonly evidence?: string;
  readonly failure?: string;
}

const ATTEMPT_DEADLINE_MS = 30_000;

const limited = async <T>(what: Promise<T>): Promise<T> => {
  const end = new AbortController();
  const late = delay(ATTEMPT_DEADLINE_MS, undefined, { signal: end.signal }).then(() => {
    throw new Error(`no evidence within ${ATTEMPT_DEADLINE_MS / 1000} s`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([what, late]);
  } finally {
    end.abort();
  }
};

/** Tries one after the other, each on the network as the one before left it. */
export const tryAll = async (attempts: readonly Attempt[]): Promise<Tried[]> => {
  const tried: Tried[] = [];
  const start = performance.now();
  for (const attempt of attempts) {
    const { name, expected } = attempt;
    const atSeconds = Math.round((performance.now() - start) / 1000);
    try {
      tried.push({ name, expected, atSeconds, evidence: (await limited(attempt.run())).slice(0, 160) });
    } catch (error) {
      tried.push({ name, expected, atSeconds, failure: (error as Error).message });
    } finally {
      await attempt.undo?.();
    }
  }
  return tried;
};

/** A line an attempt, for the log of the test. */
export const table = (tried: readonly Tried[]): string =>
  tried
    .map(({ name, expected, atSeconds, evidence, failure }) =>
      failure === undefined
        ? `${expected.padEnd(9)} ${atSeconds} s ${name}: ${evidence}`
        : `FAILED    ${atSeconds} s ${name}: not ${expected}: ${failure}`,
    )
    .join('\n');
