import { loadConfig } from '@unbounded/config';
import { runHost } from '@unbounded/host';

import { statusAggregatorOptions } from './status-aggregator.config.ts';
import { statusAggregatorModule } from './status-aggregator.module.ts';

const config = loadConfig('status-aggregator', statusAggregatorOptions, process);
await runHost({
  name: 'status-aggregator',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  module: statusAggregatorModule(config),
});
