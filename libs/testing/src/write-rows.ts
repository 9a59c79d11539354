import type { Cluster } from '@unbounded/kube';
import { expect } from 'vitest';
import { answerTo, type Write } from './write.ts';

/** Tables of what may be written with a token, and what may not: for specs, since it needs vitest. */

export type Allowed = readonly [what: string, write: Write];
export type Refused = readonly [what: string, write: Write, refusal: string];

/** A refusal whose message has this text. */
export const refused = (message: string) => ({ status: 403, message: expect.stringContaining(message) as unknown });

/** How the API server answers each of the writes. */
export const answersTo = (cluster: Cluster, rows: readonly (Allowed | Refused)[]) =>
  Promise.all(rows.map(async ([what, write]) => [what, await answerTo(cluster, write)]));
/** The answers where all are taken. */
export const taken = (rows: readonly (Allowed | Refused)[]) => rows.map(([what]) => [what, 'taken']);
/** The answers where each is refused as its row says. */
export const refusals = (rows: readonly Refused[]) => rows.map(([what, , refusal]) => [what, refused(refusal)]);
