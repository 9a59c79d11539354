import { loadConfig } from '@unbounded/config';
import { listenAddresses, runHost } from '@unbounded/host';
import { agentOptions, cleanupOptions } from './agent.config.ts';
import { agentModule } from './agent.module.ts';
import { cleanUp } from './agent/cleanup.ts';
import { sectionsOf } from './agent/sections.ts';

if (process.argv[2] === 'cleanup') {
  process.argv.splice(2, 1);
  const config = loadConfig('node-dataplane cleanup', cleanupOptions, process);
  try {
    await cleanUp(config, (line) => void process.stdout.write(`${line}\n`), sectionsOf(config));
  } catch (error) {
    process.stderr.write(`node-dataplane cleanup: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
} else {
  const config = loadConfig('node-dataplane', agentOptions, process);
  await runHost({
    name: 'node-dataplane',
    logLevel: config.logLevel,
    healthPort: config.healthPort,
    healthAddresses: listenAddresses(config.healthAddress),
    drainMs: 8000, // the grace period of the Pod is 10 s
    module: agentModule(config),
  });
}
