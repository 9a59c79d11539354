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
    unitsFolder: option(text(KEEPER_UNITS), 'Folder of the units that the agent writes.'),
    pidsFolder: option(text(`${RUN_FOLDER}/keeper/pids`), 'Folder in which running processes are noted.'),
    wireguardGo: option(text('/usr/bin/wireguard-go'), 'The user-space WireGuard program.'),
  },
  process,
);
const logger = createLogger({ name: 'node-keeper' });
const keeper = createKeeper({
  unitsFolder: config.unitsFolder,
  pidsFolder: config.pidsFolder,
  rejectedFile: join(dirname(config.unitsFolder), basename(KEEPER_REJECTED)),
  program: config.wireguardGo,
  relay: relayFilesBeside(config.unitsFolder),
  logger,
});

let ending = false;
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    ending = true; // the tunnels go on: a successor finds them
  });
}
while (!ending) {
  await keeper.tend(Date.now());
  await new Promise((resolve) => setTimeout(resolve, TEND_EVERY_MS));
}
process.exit(0);
