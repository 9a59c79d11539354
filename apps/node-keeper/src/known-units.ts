import { existsSync } from 'node:fs';
import { createUnitsReader, MOST_REJECTIONS, rejections, type UnitKind } from '@unbounded/keeper-protocol';
import { removeFile } from '@unbounded/state-files';
import type { Logger } from '@unbounded/telemetry';

/** What the keeper goes by: units as they could be read last, and what was refused of them. */

export interface KnownUnits<Unit> {
  readonly units: ReadonlyMap<string, Unit>;
  /** Whether what runs under the name goes on although there is no unit: it may be there, and cannot be read. */
  readonly keeps: (name: string) => boolean;
  readonly refused: readonly string[];
}

/** A unit that cannot be read now stays as it was: no file that goes wrong may end a process. */
export const createKnownUnits = <Unit extends object>(
  folder: string,
  kind: UnitKind<Unit>,
): (() => KnownUnits<Unit>) => {
  const read = createUnitsReader(kind);
  let known: ReadonlyMap<string, Unit> = new Map();
  return () => {
    const { units, refused, unclear, isComplete } = read(folder);
    // Only a file that is missing from its directory ends its process; a directory that is gone says nothing.
    const isReadable = isComplete && existsSync(folder);
    const keeps = (name: string): boolean => !isReadable || unclear.has(name);
    known = new Map([...[...known].filter(([name]) => keeps(name)), ...units]);
    return { units: known, keeps, refused };
  };
};

/** Logs rejections when they change, and keeps them in a file, from which the agent reports them. */
export const createRejectionReport = (file: string, logger: Logger): ((refused: readonly string[]) => void) => {
  let [told, written, failure]: (string | undefined)[] = [];
  return (refused) => {
    const text = JSON.stringify(refused);
    if (text !== told) for (const reason of refused) logger.error({ reason }, 'unit rejected; keeping what runs');
    told = text;
    if (text === written) return;
    try {
      if (refused.length === 0) removeFile(file);
      else rejections.write(file, refused.slice(0, MOST_REJECTIONS));
      [written, failure] = [text, undefined];
    } catch (error) {
      const { message } = error as Error;
      if (message !== failure) logger.error({ error: message }, 'cannot write which units were rejected');
      failure = message;
    }
  };
};
