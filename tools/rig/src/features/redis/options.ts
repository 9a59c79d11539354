/** Whether replicas of the status aggregator share what they hold. */

export interface RedisOptions {
  /** A Redis, and two replicas of the status aggregator. */
  readonly redis: boolean;
}

/** @throws Error */
const check = ({ redis, fabric }: RedisOptions & { readonly fabric: boolean }): void => {
  if (redis && fabric)
    throw new Error('--redis: a lab without Kubernetes has no status aggregator; leave out --fabric');
};

const defaults: RedisOptions = { redis: false };

export const redisOptions = { defaults, choices: {}, check } as const;
