/** Whether replicas of the status aggregator share what they hold. */

export interface RedisOptions {
  /** A Redis, and two replicas of the status aggregator. */
  readonly redis: boolean;
}

const defaults: RedisOptions = { redis: false };

export const redisOptions = { defaults, choices: {}, check: (): void => undefined } as const;
