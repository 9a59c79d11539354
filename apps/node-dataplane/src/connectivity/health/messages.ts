import type { NextHop } from '@unbounded/bpf-maps';
import type { MissedEchoes, PeerState } from '@unbounded/health';
import type { EchoPlan, ProbePlan } from '@unbounded/topology';
import type { GroupStore } from '../../data-path/group-store.ts';
import type { NodeKeys } from './probe-keys.ts';

/** What the agent and the thread that probes tell each other. */

export type Family = 4 | 6;

/** A member of a group, as the kernel knows it, and who it is. */
export interface HealthMember {
  readonly node: string;
  readonly tier: number;
  /** What stands in the map; under the netlink data path the id of a next hop. */
  readonly record: NextHop | number;
}

export interface HealthGroup {
  readonly name: string;
  /** Number of the group in the kernel's map; under the netlink data path its id. */
  readonly index: number;
  readonly family: Family;
  /** The site behind the group; undefined: a pool's routed blocks. */
  readonly site?: string;
  readonly members: readonly HealthMember[];
}

/** A device that is made anew has another index. */
export interface EchoDevice {
  readonly name: string;
  readonly index: number;
}

export interface HealthPlan {
  readonly probes: readonly ProbePlan[];
  /** Through peers that are probed, at the interval of their probes. Absent: none. */
  readonly echoes?: readonly EchoPlan[];
  /** The TUN by which they come in; absent: there is none. */
  readonly echoDevice?: EchoDevice;
  readonly groups: readonly HealthGroup[];
  /** A gateway: the sites that it serves itself. Undefined: the node tells nobody which sites it reaches. */
  readonly servedSites?: readonly string[];
  /** The largest packet that pods may send, bytes: the search for path MTUs begins there. */
  readonly mtuBytes: number;
}

/** What the thread is started with. */
export interface WorkerSettings {
  /** The node's WireGuard keys. */
  readonly keys: NodeKeys;
  readonly port: number;
  /** Undefined: there are none to write. */
  readonly groups?: GroupStore;
  /** Where verdicts outlive the process. */
  readonly stateFile: string;
  /** Another network namespace to probe in, as an open file. */
  readonly netnsFd?: number;
}

export type Call =
  | { readonly type: 'apply'; readonly plan: HealthPlan }
  | { readonly type: 'removeStale' }
  | { readonly type: 'setKeys'; readonly keys: NodeKeys };

export interface PeerReport {
  readonly node: string;
  readonly family: Family;
  readonly state: PeerState;
  /** The state before; undefined: the peer was not probed before. */
  readonly previous?: PeerState;
  /** The time is over in which a peer that never answered may carry when there is no other. */
  readonly graceOver: boolean;
  /** The peer has heard of the key that follows our current one: its requests are made with it. */
  readonly knowsNextKey: boolean;
  /** What the peer says of its echoes through this node; absent: they come back, or it sends none. */
  readonly missesEchoes?: MissedEchoes;
  /** Whether echoes through the peer come back; absent: none are sent. */
  readonly forwards?: boolean;
  /** The last round trip; undefined before the first reply. */
  readonly rttMs?: number;
  /** Of the last probes, the share that was not answered in time. */
  readonly lossRatio?: number;
  /** What the path to the peer was found to carry, where that is less than the device allows. */
  readonly pathMtuBytes?: number;
}

/** Counts since the last such message. */
export interface Measurements {
  readonly sent: number;
  readonly received: number;
  readonly echoesSent: number;
  readonly echoesReturned: number;
  readonly rejected: Readonly<Record<string, number>>;
  /** Seconds; a sample of the round trips where there were very many. */
  readonly roundTrips: readonly number[];
  /** The last round trip of each peer that was heard, milliseconds, by id. */
  readonly rttMs: ReadonlyMap<string, number>;
  /** Of each peer whose share of lost probes is another than at the last such message, by id. */
  readonly lossRatios: ReadonlyMap<string, number>;
}

/** A group as it is in the kernel. */
export interface GroupReport {
  readonly name: string;
  readonly family: Family;
  readonly site?: string;
  readonly members: readonly {
    readonly node: string;
    readonly tier: number;
    /** Packets go there. */
    readonly isActive: boolean;
    /** What the gateway itself says; absent: nothing. */
    readonly reachesSite?: boolean;
  }[];
}

/** What the thread tells without being asked. */
export type Told =
  | { readonly type: 'changed'; readonly peers: readonly PeerReport[]; readonly gone: readonly string[] }
  | { readonly type: 'groups'; readonly groups: readonly GroupReport[] }
  | ({ readonly type: 'measured' } & Measurements);

/** A peer in one family. */
export const peerId = (peer: { readonly node: string; readonly family: Family }): string =>
  `${peer.node}/IPv${peer.family}`;
