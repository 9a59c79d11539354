import { setTimeout as delay } from 'node:timers/promises';
import type { PathWorld } from './paths.scenario.ts';

/** For how long traffic between two pods is away while paths change. */

/** That may be without traffic while a path changes because packets no longer get through. */
export const LONGEST_MS = 3000;
/** To see that nothing else is lost after a move. */
const AFTERWARDS_MS = 1500;

/** Sends while `act` works and a moment longer: of each direction the longest time without traffic, 0 only when nothing was lost. */
export const during = async (world: PathWorld, act: () => Promise<unknown>): Promise<number[]> => {
  const end = world.startFlow();
  await delay(500);
  await act();
  await delay(AFTERWARDS_MS);
  const counts = await end();
  for (const { from, lostCount, lost } of counts)
    if (lostCount > 0) console.log(`from ${from} ${lostCount} lost: ${lost.at(0)} to ${lost.at(-1)}`);
  return counts.map(({ longestGapMs }) => longestGapMs);
};
