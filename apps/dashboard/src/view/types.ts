import type { ClusterView } from '@unbounded/status';

/** Parts of the view, by name. */
export type NodeView = ClusterView['nodes'][string];
export type SiteView = ClusterView['sites'][string];
export type PoolView = ClusterView['pools'][string];
export type ReachView = ClusterView['reach'][string][string];
export type Problem = ClusterView['problems'][string];
export type Severity = Problem['severity'];
export type ReachState = ReachView['state'];
