import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';

import { registrarOptions } from './registrar.config.ts';
import { registrarModule } from './registrar.module.ts';

const config = loadConfig('tailnet-registrar', registrarOptions, process);
await runHost({
  name: 'tailnet-registrar',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  healthAddresses: listenAddresses(config.healthAddress),
  module: registrarModule(config),
});
