import { until } from '@unbounded/testing';
import { expect, test } from 'vitest';
import { isAlive } from './relay.scenario.ts';
import { TwoNodes } from './two-nodes.scenario.ts';

/** Measures time, so nothing else may run beside it: what the keeper decides is in relay.kernel.spec.ts. */

test('packets go through the relay’s proxies again within two seconds after their process is killed', async () => {
  const bed = await TwoNodes.open();
  try {
    const { a } = bed;
    const { pid } = a;
    const killedMs = performance.now();
    process.kill(pid, 'SIGKILL');
    await until('another process', () => a.pid !== pid && isAlive(a.pid));
    await bed.expectPackets();
    expect(performance.now() - killedMs).toBeLessThan(2000);
  } finally {
    await bed.close();
  }
});
