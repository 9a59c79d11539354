import { startApp } from '@unbounded/testing';

import { until } from './until.ts';

/** The product's relay as a process. */
export interface RealRelay extends AsyncDisposable {
  readonly port: number;
  readonly stop: (signal?: NodeJS.Signals) => Promise<number | null>;
}

export const startRealRelay = async (flags: readonly string[] = [], port = 0): Promise<RealRelay> => {
  const app = startApp('relay', ['--addr', `127.0.0.1:${port}`, ...flags]);
  const relaying = () => app.log.find(({ msg }) => msg === 'relaying');
  await until('the relay relays', () => relaying() !== undefined, 30_000);
  return {
    port: relaying()!['port'] as number,
    stop: async (signal) => app.stop(signal),
    [Symbol.asyncDispose]: async () => app[Symbol.asyncDispose](),
  };
};
