import { loadConfig } from '@unbounded/config';
import { runHost } from '@unbounded/host';

import { relayOptions } from './relay.config.ts';
import { relayModule } from './relay.module.ts';

/** What a drain may take beyond the time that clients get. */
const SPARE_MS = 5000;

const config = loadConfig('relay', relayOptions, process);
await runHost({
  name: 'relay',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  drainMs: config.drainTime + SPARE_MS,
  module: relayModule(config),
});
