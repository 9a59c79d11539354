import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';

import { gatewayHealthOptions } from './gateway-health.config.ts';
import { gatewayHealthModule } from './gateway-health.module.ts';

const config = loadConfig('gateway-health', gatewayHealthOptions, process);
await runHost({
  name: 'gateway-health',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  healthAddresses: listenAddresses(config.healthAddress),
  module: gatewayHealthModule(config),
});
