import { silentLogger } from '@unbounded/telemetry';
import { expect, test } from 'vitest';

import type { Controller } from './controller.ts';
import { createManager } from './manager.ts';

/** An election that is won, and lost when told. */
const lostWhen = (lost: Promise<void>) => ({
  isLeader: true,
  async run(signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const term = new AbortController();
    void lost.then(() => term.abort());
    await work(AbortSignal.any([signal, term.signal]));
  },
});

test('what is to be done after the work is done when another replica leads, after the last key was worked on', async () => {
  const happened: string[] = [];
  const lost = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const controller: Controller = {
    name: 'c',
    run: (signal) =>
      new Promise((resolve) =>
        signal.addEventListener('abort', () => {
          happened.push('last key');
          resolve();
        }),
      ),
  };
  const manager = createManager({
    informers: [],
    controllers: [controller],
    election: lostWhen(lost.promise),
    afterWork() {
      happened.push('after the work');
      ended.resolve();
    },
    logger: silentLogger,
  });
  manager.start();
  lost.resolve();
  await ended.promise;
  expect(happened).toEqual(['last key', 'after the work']);
  await manager.stop();
});
