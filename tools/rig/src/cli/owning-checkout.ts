import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '@unbounded/state-files';
import { checkout, state } from '../machine/paths.ts';

/** Which checkout brought the lab up: there is one lab per machine, and another checkout may be using it. */
export interface Origin {
  readonly checkout: string;
  /** RFC 3339, UTC. */
  readonly since: string;
}

const originFile = join(state, 'origin.json');

/** Notes that this checkout brings the lab up; what is noted stays until `down`. */
export const noteOrigin = (): void => {
  if (existsSync(originFile)) return;
  replaceFile(originFile, JSON.stringify({ checkout, since: new Date().toISOString() } satisfies Origin), {
    mode: 0o644,
  });
};

/** undefined: the lab of a test, which did not note it, or one whose note was cut off. */
export const readOrigin = (): Origin | undefined => {
  try {
    return JSON.parse(readFileSync(originFile, 'utf8')) as Origin;
  } catch {
    return undefined;
  }
};

export const describeOrigin = (origin: Origin | undefined): string =>
  origin === undefined
    ? 'lab that a test made'
    : `lab of ${origin.checkout}, up since ${origin.since.slice(0, 16).replace('T', ' ')} UTC`;

/** A line of warning for who uses the lab of another checkout. */
export const foreignWarning = (origin: Origin | undefined, own: string = checkout): string | undefined =>
  origin === undefined || origin.checkout === own
    ? undefined
    : `note: this is the ${describeOrigin(origin)}; what runs in it is of that checkout, not of this one`;
