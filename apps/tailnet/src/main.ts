import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';
import { tailnetOptions } from './tailnet.config.ts';
import { tailnetModule } from './tailnet.module.ts';

const config = loadConfig('tailnet', tailnetOptions, process);
await runHost({
  name: 'tailnet',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  healthAddresses: listenAddresses(config.healthAddress),
  module: tailnetModule(config),
});
