import { type Cluster, type EventRecorder, type Node, nodes } from '@unbounded/kube';
import type { NodeCondition } from '../section.port.ts';
import type { AgentReport, Reporter } from './reporter.port.ts';

/** Tells the API server about our node: annotations that peers need, conditions and Events for operators. */

const FIELD_MANAGER = 'unbounded-node-dataplane';
/** Condition of the Node: the network works, but not all of it. */
const DEGRADED = 'UnboundedNetworkDegraded';
/** Conditions of sections begin with this (besides those of Kubernetes itself). */
const OWN_PREFIX = 'Unbounded';
/** But for the one that site-membership writes. */
const OF_OTHERS = 'UnboundedNodeAccepted';
const mayBeOurs = (type: string): boolean => type.startsWith(OWN_PREFIX) && type !== OF_OTHERS;

const degradedOf = ({ problems }: AgentReport): NodeCondition =>
  problems.length > 0
    ? {
        type: DEGRADED,
        status: 'True',
        reason: problems[0]!.reason,
        message: problems
          .map(({ message }) => message)
          .join('; ')
          .slice(0, 4000),
      }
    : { type: DEGRADED, status: 'False', reason: 'InSync', message: 'kernel state matches the plan' };

/** That all is well nobody can say while a section has not reported. */
const conditionsOf = (report: AgentReport): NodeCondition[] => [
  ...report.conditions,
  ...(report.awaiting && report.problems.length === 0 ? [] : [degradedOf(report)]),
];

type Abort = { readonly signal?: AbortSignal };

export interface ClusterReporterOptions {
  readonly cluster: Cluster;
  readonly nodeName: string;
  /** Our Node as last seen. */
  readonly node: () => Node | undefined;
  readonly events: EventRecorder;
}

type Standing = NonNullable<NonNullable<Node['status']>['conditions']>[number];

/** Conditions that stand and are not reported: our apply without them takes them away, if they were ours. */
const createStaleConditions = () => {
  /** By sections of this process: it is theirs to leave it out. */
  const everReported = new Set<string>();
  /** Undefined: nothing yet by this process; what may be ours is a former one's. */
  let applied: ReadonlySet<string> | undefined;
  const isStale = (type: string): boolean => (applied ? applied.has(type) : mayBeOurs(type));
  return {
    /** What stays while a section has not reported: it may be that section's, as the Node does not say whose a condition is. */
    kept({ awaiting }: AgentReport, wanted: readonly NodeCondition[], present: readonly Standing[]): Standing[] {
      for (const { type } of wanted) everReported.add(type);
      return awaiting ? present.filter(({ type }) => mayBeOurs(type) && !everReported.has(type)) : [];
    },
    areThere(types: ReadonlySet<string>, present: readonly Standing[]): boolean {
      return present.some(({ type }) => !types.has(type) && isStale(type));
    },
    /** What a section reported that this agent does not have stood at the first report; it is nobody's from then on. */
    applied(types: ReadonlySet<string>): void {
      applied = types;
    },
  };
};

export const createClusterReporter = ({ cluster, nodeName, node, events }: ClusterReporterOptions): Reporter => {
  const client = cluster.client(nodes);
  const stale = createStaleConditions();
  let toldProblems = new Set<string>();

  const reportAnnotations = async ({ annotations }: AgentReport, seen: Node, signal: Abort): Promise<void> => {
    const present = seen.metadata.annotations ?? {};
    if (Object.entries(annotations).some(([name, value]) => (present[name] ?? null) !== value))
      await client.mergePatch(nodeName, { metadata: { annotations } }, signal);
  };

  const reportConditions = async (report: AgentReport, seen: Node, signal: Abort): Promise<void> => {
    const present = seen.status?.conditions ?? [];
    const wanted = conditionsOf(report);
    const same = (condition: NodeCondition): boolean =>
      present.some(
        ({ type, status, reason, message }) =>
          type === condition.type &&
          status === condition.status &&
          reason === condition.reason &&
          message === condition.message,
      );
    const kept = stale.kept(report, wanted, present);
    const types = new Set([...wanted, ...kept].map(({ type }) => type));
    if (wanted.every(same) && !stale.areThere(types, present)) return stale.applied(types);
    const now = new Date().toISOString();
    const conditions = wanted.map((condition) => {
      const before = present.find(({ type, status }) => type === condition.type && status === condition.status);
      return { ...condition, lastTransitionTime: before?.lastTransitionTime ?? now, lastHeartbeatTime: now };
    });
    const status = { conditions: [...conditions, ...kept] };
    const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName }, status };
    await client.apply(object, { subresource: 'status', fieldManager: FIELD_MANAGER, force: true, ...signal });
    stale.applied(types);
  };

  const recordNewProblems = ({ problems }: AgentReport, seen: Node): void => {
    for (const { reason, message } of problems) {
      if (!toldProblems.has(message))
        events.record({ about: seen, type: 'Warning', reason, action: 'ApplyPlan', note: message });
    }
    toldProblems = new Set(problems.map(({ message }) => message));
  };

  return {
    async report(report, abort) {
      const signal: Abort = abort ? { signal: abort } : {};
      const seen = node();
      if (!seen) return;
      recordNewProblems(report, seen);
      for (const event of report.events) events.record({ about: seen, ...event });
      // Without what an essential section has to say, an apply would take its conditions off the Node.
      if (report.awaiting === 'essential') return;
      await reportAnnotations(report, seen, signal);
      await reportConditions(report, seen, signal);
    },
  };
};
