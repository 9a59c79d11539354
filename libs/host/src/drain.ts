import type { Logger } from '@unbounded/telemetry';

import type { HostPart } from './part.ts';

/**
 * Stops the parts one after the other, the last started first. A part that takes longer than what is left of the time
 * is left behind, and the rest still gets its turn. Resolves to the names of those that did not stop cleanly.
 */
export const drainParts = async (
  started: readonly HostPart[],
  withinMs: number,
  logger: Logger,
): Promise<readonly string[]> => {
  const deadline = performance.now() + withinMs;
  const unclean: string[] = [];
  for (const part of started.toReversed()) {
    const timeout = Promise.withResolvers<'late'>();
    const timer = setTimeout(() => timeout.resolve('late'), Math.max(0, deadline - performance.now()));
    try {
      const outcome = await Promise.race([
        Promise.resolve(part.stop()).then(() => 'stopped' as const),
        timeout.promise,
      ]);
      if (outcome === 'late') {
        unclean.push(part.name);
        logger.error({ part: part.name, withinMs }, 'did not stop in time');
      }
    } catch (error) {
      unclean.push(part.name);
      logger.error({ part: part.name, err: error }, 'stopped with an error');
    } finally {
      clearTimeout(timer);
    }
  }
  return unclean;
};
