import type { ClusterView, Forwarding, NodeReport, Push } from '@unbounded/status';

/** Between the edge (HTTP, WebSocket) and what holds reports and view; a replica of its own and several over Redis are behind it alike. */

/**
 * What becomes of a push. resync: it is a delta from a report that is not held here; the node sends all of it next. error: the report is not
 * valid, and names field, value and what is; what was held stays.
 */
export type Accepted = 'accepted' | 'resync' | { readonly error: string };

/** Takes the reports of nodes. The name is that of the token, never that in the body. */
export interface ReportIntake {
  accept(node: string, push: Push): Promise<Accepted>;
}

/** The cluster's view after one more change. */
export interface ViewUpdate {
  /** Of the view that results. Positions of one history have an order; see `ViewStream.since`. */
  readonly position: string;
  /** JSON Merge Patch (RFC 7396) of the view before. Undefined: the view does not follow from that one, and has to be sent whole. */
  readonly patch: unknown;
}

export interface ViewStream {
  /** Undefined: nothing has been composed yet. */
  current(): { readonly position: string; readonly view: ClusterView } | undefined;
  /** What followed a position, oldest first; undefined: that is not known any more, or is of another history. */
  since(position: string): readonly ViewUpdate[] | undefined;
  /** Called after each update, also after the first view. */
  subscribe(onUpdate: (update: ViewUpdate) => void): Disposable;
  /** What a reader should know of this replica, and not of the cluster: that its view stands still, for instance. Not part of the view, whose
   * positions are those of all replicas. */
  notices?(): readonly string[];
}

/** What a node reported last, and how old that is. */
export interface NodeReports {
  report(node: string): { readonly report: NodeReport; readonly ageMs: number } | undefined;
}

/** What a node forwards by, as its agent answered. */
export interface HeldForwarding {
  /** A `Forwarding`. */
  readonly json: Buffer;
  /** Since it came. */
  readonly ageMs: number;
}

/**
 * Between viewers, who want what a node forwards by, and its agent, which is told so with its next push and answers then: nobody listens at
 * the nodes.
 */
export interface ForwardingExchange {
  /**
   * Asks the node for a minute, or for another one. answer: the last one; absent: there is none yet. tooMany: others are being asked. away: the
   * replica to which the node pushes cannot be told.
   */
  want(node: string): Promise<'tooMany' | 'away' | { readonly answer?: HeldForwarding }>;
  /** Of a node that pushes: whether it is asked. Never rejects. */
  isWanted(node: string): Promise<boolean>;
  /** Kept for who wants it; when nobody does, not at all. */
  answer(node: string, forwarding: Forwarding): Promise<void>;
}
