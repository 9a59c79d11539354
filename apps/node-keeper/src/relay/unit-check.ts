import { basename } from 'node:path';
import { relayUnit } from '@unbounded/keeper-protocol';
import { stampOf } from './stamp.ts';

/** @returns the reason, after the name of the file */
const faultOf = (unitFile: string): readonly string[] => {
  try {
    relayUnit.read(unitFile);
    return [];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    return [`${basename(unitFile)}: ${(error as Error).message}`];
  }
};

/**
 * Why the relay's proxies refuse their unit, for the agent: they write no such thing themselves. It is read anew only when it is
 * another. Never throws.
 */
export const createRelayUnitCheck = (unitFile: string): (() => readonly string[]) => {
  let seen: string | undefined;
  let faults: readonly string[] = [];
  return () => {
    try {
      const stamp = stampOf(unitFile);
      if (stamp !== seen) [seen, faults] = [stamp, stamp === undefined ? [] : faultOf(unitFile)];
    } catch (error) {
      faults = [`${basename(unitFile)}: ${(error as Error).message}`];
    }
    return faults;
  };
};
