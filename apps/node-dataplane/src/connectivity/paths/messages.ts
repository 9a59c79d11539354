import type { Path } from '@unbounded/health';
import { laneId } from '@unbounded/topology';

/** What the agent and the thread that proves direct paths tell each other. */

/** A WireGuard peer that has a relay besides its direct way. */
export interface PathPeer {
  readonly node: string;
  readonly publicKey: string;
  readonly mode: 'auto' | 'always';
  readonly intervalMs: number;
  readonly detectMultiplier: number;
  /** The planned direct endpoint; absent: the peer is found when it calls. */
  readonly direct?: string;
  /** The endpoint of the relay's proxy on this node; absent: there is none (yet). */
  readonly proxy?: string;
}

/** A WireGuard interface: a lane of each of its peers. */
export interface PathDevice {
  readonly name: string;
  readonly listenPort: number;
  readonly isUserspace: boolean;
  /** Of the interface, base64. */
  readonly privateKey: string;
  readonly peers: readonly PathPeer[];
}

export interface PathsPlan {
  readonly devices: readonly PathDevice[];
  /** Any relay is connected. */
  readonly isRelayUp: boolean;
}

/** What the thread is started with. */
export interface PathWorkerSettings {
  /** Another network namespace to probe in, as an open file. */
  readonly netnsFd?: number;
  /** Of nonces, from start to start. */
  readonly nonceFile: string;
}

export type Call = { readonly type: 'apply'; readonly plan: PathsPlan };

/**
 * Why a path is what it is. validated: N probes were answered, and the peer is ready too. unanswered: N were not. peer: the
 * peer went back to the relay. unvalidated: a relay is connected, and direct is not validated. noDirect: nor
 * is an address known at which to prove it. noRelay: no relay is connected, or
 * the node has no proxy. always: the mesh says so. adopted: an agent of before had left it so. handshake: WireGuard shook
 * hands directly, and probes have not said yet what the way is worth.
 */
export type PathReason =
  | 'validated'
  | 'unanswered'
  | 'peer'
  | 'unvalidated'
  | 'noDirect'
  | 'noRelay'
  | 'always'
  | 'adopted'
  | 'handshake';

export interface PathReport {
  readonly device: string;
  readonly publicKey: string;
  readonly node: string;
  readonly path: Path;
  /** The path before; absent: there was none. */
  readonly from?: Path;
  readonly reason: PathReason;
  /** When the session took this path: milliseconds of the kernel's monotonic clock, which all threads share. */
  readonly takenAtMs: number;
  /** What WireGuard was given as the peer's endpoint. */
  readonly endpoint: string;
}

/** Counts since the last such message. */
export interface PathCounts {
  readonly sent: number;
  readonly received: number;
  readonly rejected: Readonly<Record<string, number>>;
}

export type Told =
  | { readonly type: 'changed'; readonly paths: readonly PathReport[]; readonly gone: readonly string[] }
  | ({ readonly type: 'measured' } & PathCounts);

export const pathId = ({ device, publicKey }: { readonly device: string; readonly publicKey: string }): string =>
  laneId(device, publicKey);
