import { existsSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadConfig } from '@unbounded/config';
import { RELAY_TALLIES } from '@unbounded/config/ownership';
import { replaceFile } from '@unbounded/state-files';
import { createLogger } from '@unbounded/telemetry';
import { relayOptions } from './options.ts';
import { RelayProxies } from './relay-proxies.ts';
import { readRelayState } from './relay-state.ts';
import { readRelayUnit } from './relay-unit.ts';

/** The relay's proxies of a node: a process that the keeper runs, and that lives on when keeper and agent end. */

/** Its files are in /run: they live as long as the ports in them. */
const ON_TMPFS = { mode: 0o600, durable: false } as const;
const LOOK_EVERY_MS = 100;
/** What could not be had is tried again. */
const AGAIN_MS = 1000;
/** What was counted is told so often: metrics are asked for less. */
const COUNTED_EVERY_MS = 2000;

const { relayUnit, relayState } = loadConfig('relay-proxies', relayOptions, process);
const logger = createLogger({ name: 'relay-proxies' });

let written = '';
/** When the state is to be written; Infinity: it is as it was. */
let dueAtMs = 0;
const proxies = new RelayProxies({
  logger,
  before: readRelayState(relayState),
  onChange: () => {
    dueAtMs = 0;
  },
});

const tell = (): void => {
  const text = JSON.stringify(proxies.state);
  try {
    if (text !== written) replaceFile(relayState, text, ON_TMPFS);
    [written, dueAtMs] = [text, Infinity];
  } catch (error) {
    logger.error({ error: (error as Error).message }, 'cannot write the state; packets go on');
    dueAtMs = performance.now() + AGAIN_MS;
  }
};

const talliesFile = join(dirname(relayState), basename(RELAY_TALLIES));
let counted = '';
let countedAtMs = Number.NEGATIVE_INFINITY;
const tellCounted = (): void => {
  countedAtMs = performance.now();
  const text = JSON.stringify(proxies.tallies);
  try {
    if (text !== counted) replaceFile(talliesFile, text, ON_TMPFS);
    counted = text;
  } catch (error) {
    logger.error({ error: (error as Error).message }, 'cannot write what was counted; packets go on');
  }
};

/** Changes whenever the unit does; undefined: it is gone. */
const stampOf = (file: string): string | undefined => {
  const stat = statSync(file, { bigint: true, throwIfNoEntry: false });
  return stat && `${stat.ino} ${stat.mtimeNs} ${stat.size}`;
};

/** @returns whether everything is as the unit says */
const follow = async (): Promise<boolean> => {
  try {
    return await proxies.apply(readRelayUnit(relayUnit));
  } catch (error) {
    logger.error({ reason: (error as Error).message }, 'the unit was refused; what runs goes on');
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
  const stamp = stampOf(relayUnit);
  const isGone = stamp === undefined && existsSync(dirname(relayUnit));
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
if (!existsSync(relayUnit)) for (const file of [relayState, talliesFile]) rmSync(file, { force: true });
process.exit(0);
