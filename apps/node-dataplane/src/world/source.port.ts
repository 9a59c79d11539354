import type { AdvertisedRoute } from '@unbounded/crds';
import type { TopologyObjects } from '@unbounded/topology';
import type { PathSummary } from '../paths/moves.ts';
import type { NodeFacts } from './object-files.ts';

/** The objects as they are now. */
export interface Snapshot {
  readonly objects: TopologyObjects;
  /** Undefined: the Node is not there (yet). */
  readonly node: NodeFacts | undefined;
  /** Changes whenever anything in it changed. */
  readonly version: number;
}

/** Where the agent's objects come from. */
export interface WorldSource {
  /** Undefined until everything has been read once. */
  snapshot(): Snapshot | undefined;
  onChange(handler: () => void): void;
  stop(): Promise<void>;
}

/** What the agent tells the world about its node. */
export interface NodeReport {
  readonly publicKey: string;
  readonly keyGeneration: number;
  readonly nextPublicKey: string | undefined;
  /** Undefined: the node's own network is not known; what was told last stands. */
  readonly tunnelMtuBytes: number | undefined;
  readonly protocols: readonly string[];
  /** A plan has been applied: pods have a network. */
  readonly networkReady: boolean;
  readonly problems: readonly { readonly reason: string; readonly message: string }[];
  /** Of peers that have a relay; undefined: there are none. */
  readonly paths: PathSummary | undefined;
  /** Moves between direct and relay since the last report, in words. */
  readonly moves: readonly string[];
  /** Pods whose frames were dropped since the last report because they were not their own, in words. */
  readonly podDrops?: readonly string[];
  /** Of a gateway: what lies behind it. */
  readonly routes: Readonly<Record<string, AdvertisedRoute>> | undefined;
}

export interface Reporter {
  /** Writes what differs from what was told last. Failures are tried again with the next report. @throws Error when it aborts */
  report(report: NodeReport, signal?: AbortSignal): Promise<void>;
}
