import { writeFileSync } from 'node:fs';
import type { ViewInputs } from '@unbounded/status';
import { createMetrics, type Logger, silentLogger } from '@unbounded/telemetry';
import type { ViewUpdate } from '../intake.port.ts';
import type { RedisAddress } from './redis-url.ts';
import { type ShareOptions, shareByRedis } from './share-by-redis.ts';

/** A replica as the module makes it, with short times, and what its clients were told. */

const nodeNames = ['n1', 'n2', 'n3'];

export const inputsOf = (nodes: readonly string[] = nodeNames): Omit<ViewInputs, 'reports'> => ({
  sites: [{ name: 's1' }],
  pools: [],
  nodes: nodes.map((name) => ({ name, site: 's1', ready: 'True' as const, faults: [], knownMs: 3_600_000 })),
});

export const addressOf = (port: number): RedisAddress => ({
  ...{ host: '127.0.0.1', port, database: 0, username: undefined, isTls: false },
});

interface ReplicaInit extends Partial<Omit<ShareOptions, 'connection'>> {
  readonly connection?: Partial<ShareOptions['connection']>;
  readonly logger?: Logger;
}

export const startReplica = (port: number, { connection, ...over }: ReplicaInit = {}) => {
  const metrics = createMetrics();
  const { reports, view, forwarding, part } = shareByRedis({
    connection: {
      address: addressOf(port),
      passwordFile: undefined,
      caFile: undefined,
      commandTimeoutMs: 10_000, // nothing that holds up the test, or Redis, takes as long
      ...connection,
    },
    cluster: 'test',
    objects: () => inputsOf(),
    clocks: { elapsed: () => performance.now(), now: () => new Date() },
    logger: silentLogger,
    metrics,
    ...{ composeEveryMs: 40, followEveryMs: 10, leaseMs: 600, notRenewedMs: 2000 },
    ...over,
  });
  const told: ViewUpdate[] = [];
  view.subscribe((update) => void told.push(update));
  void part.start();
  return {
    ...{ reports, view, forwarding, part, metrics, told },
    metric: async (name: string): Promise<number> => {
      const line = (await metrics.render()).split('\n').find((text) => text.startsWith(`${name} `));
      return Number(line?.split(' ').at(-1) ?? 0);
    },
    [Symbol.asyncDispose]: async () => part.stop(),
  };
};

export const reportOf = (agentVersion = '0.1.0', over: object = {}) => ({
  ...{ agentVersion, isComplete: true, problems: [], drops: {} },
  ...over,
});

export const fileOf = (folder: string, name: string, text: string): string => {
  writeFileSync(`${folder}/${name}`, text);
  return `${folder}/${name}`;
};
