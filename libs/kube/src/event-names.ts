import { isConflict } from './api-error.ts';
import type { ResourceClient } from './client.ts';
import type { EventAllowance } from './event-allowance.ts';
import type { Event } from './objects.ts';

/** What Events are called: each by another name, of which a program with an allowance has only so many. */

/** Of a program with an allowance: three digits, so that a day's Events have names where they are kept so long (`--event-ttl`). */
const NAMES = 16 ** 3;
const LONGEST_SUBJECT = 200;

/** Names are drawn by lot: whether one is taken the API server says. @param wallMs what time it is, milliseconds */
export const eventName = (about: string, wallMs: number, allowance: EventAllowance | undefined): string => {
  const subject = about.slice(0, LONGEST_SUBJECT);
  if (!allowance) return `${subject}.${wallMs.toString(16)}${Math.floor(Math.random() * 0xff_ffff).toString(16)}`;
  return `${subject}.${Math.floor(Math.random() * NAMES)
    .toString(16)
    .padStart(3, '0')}`;
};

/** While a quarter of the names is taken, all of these are once in 65,536 times. */
const MOST_TRIED = 8;

/** @returns the name that was not taken */
export const createNamed = async (
  events: ResourceClient<Event>,
  event: Event,
  nextName: () => string,
): Promise<string> => {
  for (let attempt = 1; ; attempt++) {
    const name = nextName();
    try {
      await events.create({ ...event, metadata: { ...event.metadata, name } });
      return name;
    } catch (error) {
      if (!isConflict(error) || attempt === MOST_TRIED) throw error;
    }
  }
};
