export interface Pod {
  readonly name: string;
  readonly node: string;
  readonly site: string;
  /** One of each family; the first is the primary one. */
  readonly ips: readonly string[];
  /** The primary of them. */
  readonly ip: string;
}

/** Names that those of test pods begin with: two on a node. */
export const PROBES = ['probe-a', 'probe-b'] as const;
