/** Of requests for what nodes forward by: a viewer must not make all nodes read their maps and routes, nor this program hold them. */
export const FORWARDING_LIMITS = {
  /** Nodes that are asked at the same time. */
  mostNodes: 32,
  /** A node is asked with each of its pushes for so long after somebody wanted it last. */
  wantedMs: 60_000,
  /** An answer is kept for so long. */
  heldMs: 60_000,
} as const;

/** A node that has not reported for so long is not asked: it would answer with its next push alone. */
export const SILENT_AFTER_MS = 25_000;
