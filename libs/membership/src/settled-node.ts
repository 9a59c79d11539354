import type { Site } from '@unbounded/crds';
import type { PrefixLoss } from './claims.ts';
import type { NodeFacts } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import type { NodeRecord } from './records.ts';

/** A node with what it may use of what it claims. */
export interface SettledNode {
  readonly facts: NodeFacts;
  /** The Site that the node is in by its internal addresses. */
  readonly site: Site | undefined;
  /** A pool selects it: its external addresses count. */
  readonly isGateway: boolean;
  /** What its pool or slice lists now. */
  readonly record: NodeRecord;
  /** All that is not used, and why. */
  readonly problems: readonly NodeProblem[];
  /** Pod CIDRs that overlap those of a node that was listed first. */
  readonly losses: readonly PrefixLoss[];
}
