import type { Answers } from '@unbounded/netlink';
import { createMetrics, silentLogger as logger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';
import { PORTS_OF_ADDRESS } from './port-usage.plan.ts';
import { createPortWatch } from './port-watch.ts';

const HELD = new Set(['192.0.2.1']);
const answers: Answers = { protocol: 6, address: '192.0.2.1', peer: '198.51.100.7', peerPort: 443 };

/** Connections of the address, as the kernel has them; a test changes it, and holds answers back. */
const openWatch = (everyMs = 0) => {
  const world = { ports: 0, asked: 0, changed: 0, isFailing: false, answered: Promise.resolve() };
  const metrics = createMetrics();
  const watch = createPortWatch({
    conntrack: {
      async countAnsweredAt() {
        world.asked++;
        await world.answered;
        if (world.isFailing) throw new Error('no buffer space');
        return new Map([[answers, world.ports]]);
      },
    },
    metrics,
    onChange: () => void world.changed++,
    logger,
    timings: { everyMs, threshold: 0.5 },
  });
  const look = async (addresses: ReadonlySet<string> = HELD): Promise<void> => {
    watch.look(addresses);
    await new Promise((resolve) => setImmediate(resolve));
  };
  const shown = async (): Promise<string[]> =>
    [...(await metrics.render()).matchAll(/^unbounded_egress_ports_used_ratio(\{.*)$/gm)].map(([, text]) => text!);
  return { world, watch, look, shown };
};

test('the gauge has the share of every address, and passes are asked for when a problem comes or goes', async () => {
  const { world, watch, look, shown } = openWatch();
  await look(new Set(['192.0.2.1', '192.0.2.2']));
  expect(await shown()).toEqual(['{address="192.0.2.1"} 0', '{address="192.0.2.2"} 0']);
  world.ports = PORTS_OF_ADDRESS / 2;
  await look();
  expect(await shown()).toEqual(['{address="192.0.2.1"} 0.5']);
  expect(watch.problems()).toEqual([
    { reason: 'EgressPortsExhausting', message: expect.stringContaining('at least 32000 of its 64512 ports') },
  ]);
  expect(world.changed).toBe(1);
  await look();
  expect(world.changed).toBe(1);
  await look(new Set());
  expect([watch.problems(), world.changed, await shown()]).toEqual([[], 2, []]);
});

test('it looks no more often than it may, and not while it is looking', async () => {
  const seldom = openWatch(60_000);
  await seldom.look();
  await seldom.look();
  expect(seldom.world.asked).toBe(1);
  const { world, look } = openWatch();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.answered = promise;
  await look();
  await look();
  expect(world.asked).toBe(1);
  resolve();
  await look(new Set());
  await look();
  expect(world.asked).toBe(2);
});

test('what cannot be read leaves what was seen, and after the end nothing is told', async () => {
  const { world, watch, look } = openWatch();
  world.ports = PORTS_OF_ADDRESS;
  await look();
  world.isFailing = true;
  await look();
  expect(watch.problems()).toHaveLength(1);
  world.isFailing = false;
  world.ports = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  world.answered = promise;
  await look();
  watch.stop();
  resolve();
  await new Promise((done) => setImmediate(done));
  expect(world.changed).toBe(1);
});
