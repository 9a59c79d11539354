import { existsSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@unbounded/config';
import { RELAY_TALLIES } from '@unbounded/config/ownership';
import { relayState, type RelayState, relayTallies, relayUnit } from '@unbounded/keeper-protocol';
import { createLogger } from '@unbounded/telemetry';
import { relayOptions } from './options.ts';
import { RelayProxies } from './relay-proxies.ts';
import { stampOf } from './stamp.ts';

/** The relay's proxies of a node: a process that the keeper runs, and that lives on when keeper and agent end. */

/** Its files are in /run: they live as long as the ports in them. */
const ON_TMPFS = { durable: false } as const;
const LOOK_EVERY_MS = 100;
/** What could not be had is tried again. */
const AGAIN_MS = 1000;
/** What was counted is told so often: metrics are asked for less. */
const COUNTED_EVERY_MS = 2000;

const { relayUnit: unitFile, relayState: stateFile } = loadConfig('relay-proxies', relayOptions, process);
const logger = createLogger({ name: 'relay-proxies' });

/** Of the process before this one; nothing when there is none, or it cannot be read. */
const readBefore = (): RelayState => {
  try {
    return relayState.read(stateFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      logger.warn({ error: (error as Error).message }, 'cannot read the previous state; proxies get new ports');
    return { proxies: [], relays: [] };
  }
};

/** When the state is to be written; Infinity: it is as it was. */
let dueAtMs = 0;
const proxies = new RelayProxies({
  logger,
  before: readBefore(),
  onChange: () => {
    dueAtMs = 0;
  },
});

const tell = (): void => {
  try {
    relayState.write(stateFile, proxies.state, ON_TMPFS);
    dueAtMs = Infinity;
  } catch (error) {
    logger.error({ error: (error as Error).message }, 'cannot write the state; forwarding continues');
    dueAtMs = performance.now() + AGAIN_MS;
  }
};

const talliesFile = join(dirname(stateFile), basename(RELAY_TALLIES));
let countedAtMs = Number.NEGATIVE_INFINITY;
let beats = 0;
const dropTallies = (): void => {
  try {
    rmSync(talliesFile, { force: true });
  } catch (error) {
    logger.error({ error: (error as Error).message }, 'cannot remove the counters');
  }
};
const tellCounted = (): void => {
  countedAtMs = performance.now();
  try {
    relayTallies.write(talliesFile, { ...proxies.tallies, beats: ++beats }, ON_TMPFS);
  } catch (error) {
    logger.error({ error: (error as Error).message }, 'cannot write the counters; forwarding continues');
    dropTallies(); // else they would say that this process beats no more
  }
};

/** @returns whether everything is as the unit says */
const follow = async (): Promise<boolean> => {
  try {
    return await proxies.apply(relayUnit.read(unitFile));
  } catch (error) {
    logger.error({ reason: (error as Error).message }, 'unit rejected; keeping the running configuration');
    return true; // until it is another
  }
};

let ending = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.on(signal, () => {
    ending = true;
  });

let seen: string | undefined;
let againAtMs = Infinity;
while (!ending) {
  const stamp = stampOf(unitFile);
  const isGone = stamp === undefined && existsSync(dirname(unitFile));
  if (isGone) break;
  if (stamp !== undefined && (stamp !== seen || performance.now() >= againAtMs)) {
    seen = stamp;
    againAtMs = (await follow()) ? Infinity : performance.now() + AGAIN_MS;
  }
  if (performance.now() >= dueAtMs) tell();
  if (performance.now() >= countedAtMs + COUNTED_EVERY_MS) tellCounted();
  await delay(LOOK_EVERY_MS);
}
proxies.close();
// Whoever ends it for another reason wants it to come back with its ports.
if (!existsSync(unitFile)) for (const file of [stateFile, talliesFile]) rmSync(file, { force: true });
process.exit(0);
