import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';

import { runExplain } from './explain/run-explain.ts';
import { staticEgressOptions } from './static-egress.config.ts';
import { staticEgressModule } from './static-egress.module.ts';

const runController = async (): Promise<void> => {
  const config = loadConfig('static-egress', staticEgressOptions, process);
  await runHost({
    name: 'static-egress',
    logLevel: config.logLevel,
    healthPort: config.healthPort,
    healthAddresses: listenAddresses(config.healthAddress),
    module: staticEgressModule(config),
  });
};

if (process.argv[2] === 'explain') process.exitCode = await runExplain(process);
else await runController();
