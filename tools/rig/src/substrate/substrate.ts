import type { EgressNodeSlice } from '@unbounded/crds';
import type { NodeApp, ObjectSource } from '../apps/agents.ts';
import type { Installation } from '../apps/chart.ts';
import type { Check } from '../checks/checks.ts';
import type { Ground } from '../checks/reach-checks.ts';
import type { Pod } from '../checks/test-pod.ts';
import type { LabLayout, LabNode } from '../layout/layout.ts';

/**
 * What a lab stands on: real Kubernetes (cluster), or network namespaces and files in its place (bare). Everything above
 * calls these functions and asks nowhere which of the two it is.
 */
export interface Substrate {
  /** Whether there are an API server, kubectl and controllers. */
  readonly hasKubernetes: boolean;
  /** Brings the lab up, or completes one that is half up. @param installation of our pods; the checkout's when not given */
  readonly up: (layout: LabLayout, installation?: Installation) => Promise<void>;
  readonly startNode: (layout: LabLayout, node: LabNode) => void;
  /** Our apps that run on every node. */
  readonly nodeApps: (layout: LabLayout) => readonly NodeApp[];
  /** Where a node's agent reads objects from. */
  readonly objectSource: ObjectSource;
  readonly programs: Programs;
  /** Daemons of the machine that should run; a feature's are not among them. */
  readonly daemons: (layout: LabLayout) => readonly string[];
  /** What nodes are told about egress addresses. */
  readonly egressSlices: (layout: LabLayout) => Promise<readonly EgressNodeSlice[]>;
  readonly pods: PodAccess;
  readonly proof: Proof;
  readonly hints: Hints;
}

/** Programs of the substrate that keep a log, or that can be stopped and started. */
interface Programs {
  /** With a log each on the machine. */
  readonly ofCluster: readonly string[];
  /** With a log each on every node. */
  readonly ofNode: readonly string[];
  readonly stoppable: readonly string[];
}

interface PodAccess {
  /** The test pods that there are. */
  readonly list: (layout: LabLayout) => Promise<readonly Pod[]>;
  /** How many there should be, and who makes them. */
  readonly expected: (layout: LabLayout) => { readonly count: number; readonly from: string };
  /** What runs the probe in a pod. @param hasInput whether something is sent to its standard input */
  readonly probeCommand: (layout: LabLayout, pod: Pod, hasInput: boolean) => readonly string[];
  /** What pods send at most. @param deviceMtu of their interfaces */
  readonly mtu: (layout: LabLayout, deviceMtu: number) => number;
}

/** How `tools/lab verify` proves that such a lab works. */
interface Proof {
  /** TCP port that something listens on on every node. */
  readonly nodePort: number;
  readonly streamMebibytes: number;
  readonly checks: (ground: Ground) => Promise<Seen>;
}

interface Seen {
  readonly checks: readonly Check[];
  /** Tunnel protocols that every node can do. */
  readonly able: ReadonlySet<string>;
}

/** What a person may want to see of such a lab. */
interface Hints {
  /** Where there is a status aggregator: what its page shows. */
  readonly dashboard?: string;
  /** What `verify` shows. */
  readonly verify: string;
  /** Commands of tools/lab. */
  readonly more: readonly string[];
  /** Commands that `status` runs. */
  readonly status: (layout: LabLayout) => readonly (readonly string[])[];
}
