import { controlPlaneOptions, loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';

import { siteMembershipModule } from './site-membership.module.ts';

const config = loadConfig('site-membership', controlPlaneOptions, process);
await runHost({
  name: 'site-membership',
  logLevel: config.logLevel,
  healthPort: config.healthPort,
  healthAddresses: listenAddresses(config.healthAddress),
  module: siteMembershipModule(config),
});
