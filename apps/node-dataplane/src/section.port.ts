import type { KindTable } from '@unbounded/crds';
import type { Cluster } from '@unbounded/kube';
import type { RouteEvent, RouteSocket } from '@unbounded/netlink';
import type { Nftables, TableFamily } from '@unbounded/nftables';
import type { Forwarding, NodeReport } from '@unbounded/status';
import type { Logger, Metrics } from '@unbounded/telemetry';
import type { Problem } from '@unbounded/topology';
import type { Attachment } from './attachment/attachment.ts';
import type { HookHandlers, HookType } from './attachment/hook.port.ts';
import type { BaseChain } from './kernel/base-chains.ts';
import type { SectionBoundary } from './kernel/boundary-additions.ts';
import type { KernelWrites } from './kernel/kernel-writes.ts';
import type { SharedPeers } from './kernel/overlay-peers.ts';
import type { SharedTraffic } from './kernel/overlay-traffic.ts';
import type { SectionTable } from './kernel/section-table.ts';
import type { StateFaults } from './state/state-faults.ts';
import type { InputFilters, WorldSource } from './world/source.port.ts';

/**
 * A section is one system of the node: it has its own inputs, plan, kernel state, report and kept plan, and its own loop. The agent
 * is a list of sections over one shared context. What fails in a section is a problem of that section and stops no other.
 */
export interface SectionType {
  /** A lower-case word: its file of the kept plan, its nftables tables and the aliases of its devices have it in their names. */
  readonly name: string;
  /** Of its routes and rules; see ROUTE_PROTOCOLS of the registry. Not set: it has none. */
  readonly routeProtocol?: number;
  /** Of its nftables tables; see base-chains.ts. */
  readonly baseChains?: readonly BaseChain[];
  /** Without it the agent does not start: a failure to open ends the process. Any other section is opened again and again. */
  readonly isEssential?: boolean;
  /** What it has to do with pods that come and go; not set: nothing. */
  readonly hook?: HookType;
  /** When it rejects, what it took of the context is given back; what it began itself (threads, sockets) it must have ended. */
  open(context: SectionContext): Promise<Section>;
  /** Uninstall: takes away what the section made on the node, besides what the agent itself takes away (see unlisted.ts). */
  cleanUp?(context: CleanupContext): Promise<void>;
}

export interface Section {
  /** Observe, plan, diff, apply. One at a time; an error is reported, and the pass repeated. */
  pass(): Promise<SectionPass>;
  /** Whether what it is for works; the agent is ready when all sections are. Not set: nobody waits for it. */
  readonly isReady?: boolean;
  /** Of the hook of its type. A pod may have come or gone while the section was not open: `attachment.pods` has those that are there. */
  readonly hook?: HookHandlers;
  /** Everything in the kernel stays. */
  stop(): Promise<void>;
}

export interface SectionPass {
  /** In how many milliseconds the next pass is due at the latest. */
  readonly nextPassMs: number;
  readonly report: SectionReport;
  /** How many of what its plan has, by kind: for metrics. Not set: there is no plan. */
  readonly planned?: Readonly<Record<string, number>>;
}

/** What the section has to say to peers and operators. The agent compares it with what stands, and writes the difference. */
export interface SectionReport {
  readonly problems: readonly Problem[];
  /** Of the Node; null: not there. */
  readonly annotations?: Readonly<Record<string, string | null>>;
  /** Types begin with `Unbounded`: the chart's policy allows no others, but for NetworkUnavailable. */
  readonly conditions?: readonly NodeCondition[];
  /** What happened since the last report. */
  readonly events?: readonly NodeEvent[];
  /** Other objects that the section keeps up to date: runs at most once, apart from the reports and writes of others. */
  readonly write?: (signal: AbortSignal) => Promise<void>;
  /** Its part of the node's report to the status aggregator, as things are when it is called. */
  readonly status?: () => SectionStatus;
  /** Reads what the node forwards by, at somebody's request; of one section. @throws Error when it cannot be read */
  readonly forwarding?: () => Promise<Forwarding>;
}

export type SectionStatus = Pick<NodeReport, 'connectivity' | 'egress'>;

export interface NodeCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export interface NodeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

/** What all sections share. */
export interface SectionContext {
  readonly nodeName: string;
  /** What the section writes by these two is counted. */
  readonly net: RouteSocket;
  readonly nft: Nftables;
  /** Counts what the section writes into eBPF maps. */
  readonly kernelWrites: Pick<KernelWrites, 'map'>;
  /** What the section adds to where packets may leave and enter the overlay at this node. */
  readonly boundary: SectionBoundary;
  /** What belongs to the overlay at this node. */
  readonly traffic: SharedTraffic;
  /** This node and others in the overlay. */
  readonly peers: SharedPeers;
  /** The section's own nftables table of a family; the section gets a pass when anybody changes it. */
  readonly table: (family: TableFamily) => SectionTable;
  readonly kept: KeptSection;
  /** Objects of these kinds, and the node's own; the section gets a pass when any of them changes. */
  readonly openInputs: <T extends KindTable>(kinds: T, filters?: InputFilters<T>) => WorldSource<T>;
  /** Undefined: objects come from a directory. */
  readonly cluster: Cluster | undefined;
  /** The pods of the node. */
  readonly attachment: Pick<
    Attachment,
    'pods' | 'bridgePods' | 'guard' | 'gate' | 'detachGone' | 'releaseOfFormerBoot'
  >;
  /** Asks for a pass soon. */
  readonly trigger: () => void;
  /** What its status shows is another, and no pass is needed for it. */
  readonly statusChanged: () => void;
  /** Changes of links, addresses and routes; the section gets a pass when one concerns it, when it cannot say, or when some were missed. */
  readonly onKernelChange: (concerns: (event: RouteEvent) => boolean) => void;
  readonly faults: StateFaults;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** The section's last plan in a file of its own, which the next and the previous version of the agent read. */
export interface KeptSection {
  /** Undefined: there is none, or the file is damaged, which is logged. The plan itself is not validated. */
  read(): VersionedPlan | undefined;
  write(kept: VersionedPlan): void;
}

export interface VersionedPlan {
  /** Of the form: a reader takes no version above those that it knows. */
  readonly version: number;
  readonly plan: unknown;
}

export interface CleanupContext {
  readonly net: RouteSocket;
  readonly nft: Nftables;
  readonly say: (line: string) => void;
}
