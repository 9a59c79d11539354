import { controlPlaneOptions, loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';

import { l2NetworksModule } from './l2-networks.module.ts';

const config = loadConfig('l2-networks', controlPlaneOptions, process);
await runHost({
  name: 'l2-networks',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  healthAddresses: listenAddresses(config.healthAddress),
  module: l2NetworksModule(config),
});
