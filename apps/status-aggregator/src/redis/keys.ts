/** Names in Redis. The braces keep all of a cluster's in one slot (Redis Cluster), as scripts over several keys need. */
export interface RedisKeys {
  /** Stream: what changed in the reports. */
  readonly reports: string;
  /** Hash: the whole report of each node. */
  readonly held: string;
  /** Number of entries that the stream of reports ever had. */
  readonly count: string;
  /** Who composes the view. */
  readonly lease: string;
  /** Stream: what changed in the view. */
  readonly view: string;
  /** Hash: the view after the last entry of its stream. */
  readonly snapshot: string;
  /** Sorted set: nodes of which somebody wants to know what they forward by, and until when. */
  readonly wanted: string;
  /** String: what a node answered. */
  readonly forwarding: (node: string) => string;
}

export const redisKeys = (cluster: string): RedisKeys => {
  const key = (name: string): string => `unbounded:status:{${cluster}}:${name}`;
  return {
    ...{ reports: key('reports'), held: key('held'), count: key('count') },
    ...{ lease: key('lease'), view: key('view'), snapshot: key('snapshot') },
    wanted: key('wanted'),
    forwarding: (node) => key(`forwarding:${node}`),
  };
};
