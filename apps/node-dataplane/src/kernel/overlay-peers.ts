/** What other sections may know of the overlay: read-only, as the plan in force has it. */
export interface OverlayPeers {
  /** Of this node, at most one of each family. */
  readonly overlayAddresses: readonly string[];
  /** Of packets in the overlay, bytes: what the narrowest way leaves. */
  readonly mtuBytes: number;
  /** Blocks of this node's own pods. */
  readonly podCidrs: readonly string[];
  /** What pods see with their own address: pods and nodes of other sites, and what Sites name besides. Prefixes. */
  readonly keepsSource: readonly string[];
  /** Addresses of the API server, which may be outside of the cluster. */
  readonly apiServer: readonly string[];
  /** Of this node for stretched L2, an IPv6 /64; undefined: it has none. */
  readonly locator: string | undefined;
  /** Blocks of pods, nodes and locators that are reached without a tunnel (protocol None), and so come without one. Prefixes. */
  readonly native: readonly string[];
  /** Blocks to which the node's links lead, of whatever use. Prefixes. */
  readonly routed: readonly string[];
  /** Of all nodes that have one, also of those without a link to this one, by the node's name. Computed when it is first called. */
  locators(): ReadonlyMap<string, string>;
  /** All that are known. Computed when it is first called. */
  nodes(): readonly OverlayNode[];
}

interface OverlayNode {
  readonly node: string;
  /** At most one of each family. */
  readonly overlayAddresses: readonly string[];
  /** By which its peers know it, internal and external. */
  readonly addresses: readonly string[];
}

/** Connectivity sets it; other sections read it. */
export interface SharedPeers {
  /** Undefined: there is no plan yet, or only a kept one. */
  current(): OverlayPeers | undefined;
  readonly set: (peers: OverlayPeers | undefined) => void;
  onChange(listener: () => void): void;
  /** When any of them was last known to answer, by `performance.now()`; never: -Infinity. */
  heardMs(): number;
  /** One answers. */
  readonly heard: () => void;
}

export const createSharedPeers = (): SharedPeers => {
  let current: OverlayPeers | undefined;
  let heardMs = -Infinity;
  const listeners: (() => void)[] = [];
  return {
    current: () => current,
    heardMs: () => heardMs,
    heard: () => {
      heardMs = performance.now();
    },
    set(peers) {
      if (peers === current) return;
      current = peers;
      for (const listener of listeners) listener();
    },
    onChange: (listener) => void listeners.push(listener),
  };
};
