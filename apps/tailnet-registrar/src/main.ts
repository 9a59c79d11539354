import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';
import { openCluster } from '@unbounded/kube/open-cluster';
import { createLogger } from '@unbounded/telemetry';

import { endTailnet } from './end-tailnet.ts';
import { endTailnetOptions, registrarOptions } from './registrar.config.ts';
import { registrarModule } from './registrar.module.ts';
import { clientsOf } from './registrar-objects.ts';

if (process.argv[2] === 'end-tailnet') {
  process.argv.splice(2, 1);
  const config = loadConfig('tailnet-registrar end-tailnet', endTailnetOptions, process);
  const cluster = openCluster({ kubeconfig: config.kubeconfig });
  const { meshes, devices } = clientsOf(cluster);
  const logger = createLogger({ name: 'end-tailnet', level: config.logLevel });
  try {
    await endTailnet({ ...{ meshes, devices, logger }, timeoutMs: config.timeout, settleMs: config.settle });
  } catch (error) {
    logger.fatal((error as Error).message);
    process.exitCode = 1;
  }
  cluster.close();
} else {
  const config = loadConfig('tailnet-registrar', registrarOptions, process);
  await runHost({
    name: 'tailnet-registrar',
    logLevel: config.logLevel,
    healthPort: config.healthPort,
    healthAddresses: listenAddresses(config.healthAddress),
    module: registrarModule(config),
  });
}
