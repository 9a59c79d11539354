import { controlPlaneOptions, loadConfig } from '@unbounded/config';
import { runHost } from '@unbounded/host';

import { gatewayHealthModule } from './gateway-health.module.ts';

const config = loadConfig('gateway-health', controlPlaneOptions, process);
await runHost({
  name: 'gateway-health',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  module: gatewayHealthModule(config),
});
