import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nodeDir } from '../../machine/paths.ts';

/** A wall clock of its own for the agent of a node, which can be stepped while it runs; time goes on at its pace. */

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';

const file = (node: string): string => join(nodeDir(node), 'clock');

/** Sets the clock of the node's agent ahead, or back, by so many seconds of the machine's. */
export const stepClock = (node: string, seconds: number): void =>
  writeFileSync(file(node), `${seconds < 0 ? '-' : '+'}${Math.abs(seconds)}\n`);

/** With this environment a program has the clock of the node. Timers and the monotonic clock stay the machine's. */
export const clockOf = (node: string): NodeJS.ProcessEnv => {
  if (!existsSync(LIBRARY)) throw new Error(`${LIBRARY} is missing: run tools/setup vm`);
  return {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file(node),
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
  };
};
