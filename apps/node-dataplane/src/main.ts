import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';
import { agentOptions } from './agent.config.ts';
import { agentModule } from './agent.module.ts';
import { cleanUp } from './agent/cleanup.ts';
import { sectionsOf } from './agent/sections.ts';

if (process.argv[2] === 'cleanup') {
  process.argv.splice(2, 1);
  const config = loadConfig('node-dataplane cleanup', agentOptions, process);
  await cleanUp(config, (line) => void process.stdout.write(`${line}\n`), sectionsOf(config));
} else {
  const config = loadConfig('node-dataplane', agentOptions, process);
  await runHost({
    name: 'node-dataplane',
    logLevel: config.logLevel,
    healthPort: config.healthPort,
    healthAddresses: listenAddresses(config.healthAddress),
    module: agentModule(config),
  });
}
