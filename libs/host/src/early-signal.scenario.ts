/** A program that is asked to end while it is being made: prints which of its parts were started. */
import { setTimeout as sleep } from 'node:timers/promises';
import { hostModule } from './host-module.ts';
import { runHost } from './host.ts';

const part = (name: string) => ({
  name,
  start: async () => {
    console.log(`started ${name}`);
    await sleep(200);
  },
  stop: () => console.log(`stopped ${name}`),
});

await runHost({
  ...{ name: 'early', healthPort: 0, healthAddresses: ['127.0.0.1'], drainMs: 5000 },
  module: () => {
    process.kill(process.pid, 'SIGTERM');
    return hostModule(() => [part('first'), part('second')]);
  },
});
