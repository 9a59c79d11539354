import { basename, dirname, join } from 'node:path';
import { loadConfig, option, text } from '@unbounded/config';
import { KEEPER_REJECTED, KEEPER_UNITS, RUN_FOLDER } from '@unbounded/config/ownership';
import { createLogger } from '@unbounded/telemetry';
import { createKeeper } from './keeper.ts';
import { relayFilesBeside } from './relay/command.ts';

/** A dead process is noticed after at most this, so that traffic is back well within two seconds. */
const TEND_EVERY_MS = 100;

const config = loadConfig(
  'node-keeper',
  {
    unitsDir: option(text(KEEPER_UNITS), 'Directory of the units that the agent writes.'),
    pidsDir: option(text(`${RUN_FOLDER}/keeper/pids`), 'Directory of the PID files of running processes.'),
    wireguardGo: option(text('/usr/bin/wireguard-go'), 'The user-space WireGuard program.'),
  },
  process,
);
const logger = createLogger({ name: 'node-keeper' });
const keeper = createKeeper({
  unitsDir: config.unitsDir,
  pidsDir: config.pidsDir,
  rejectedFile: join(dirname(config.unitsDir), basename(KEEPER_REJECTED)),
  program: config.wireguardGo,
  relay: relayFilesBeside(config.unitsDir),
  logger,
});

let ending = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    ending = true; // the tunnels go on: a successor finds them
  });
}
// As PID 1 of its container the keeper must not end: every tunnel would end with it. Nothing that is left half done by an error
// is relied upon, because each look begins with what runs.
const survive = (error: unknown): void => logger.error({ err: error }, 'unexpected error; keeping tunnels');
process.on('uncaughtException', survive);
process.on('unhandledRejection', survive);

while (!ending) {
  await keeper.tend(performance.now()).catch(survive);
  await new Promise((resolve) => setTimeout(resolve, TEND_EVERY_MS));
}
process.exit(0);
