import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';

import { cidrAllocatorOptions } from './cidr-allocator.config.ts';
import { cidrAllocatorModule } from './cidr-allocator.module.ts';

const config = loadConfig('cidr-allocator', cidrAllocatorOptions, process);
await runHost({
  name: 'cidr-allocator',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  healthAddresses: listenAddresses(config.healthAddress),
  module: cidrAllocatorModule(config),
});
