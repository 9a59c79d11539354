import { type Cluster, type EventRecorder, type Node, nodes } from '@unbounded/kube';
import type { NodeCondition } from '../section.port.ts';
import type { AgentReport, Reporter } from './reporter.port.ts';

/** Tells the API server about our node: annotations that peers need, conditions and Events for operators. */

const FIELD_MANAGER = 'unbounded-node-dataplane';
/** Condition of the Node: the network works, but not all of it. */
const DEGRADED = 'UnboundedNetworkDegraded';
/** Conditions of sections begin with this (besides those of Kubernetes itself). */
const OWN_PREFIX = 'Unbounded';

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
    : { type: DEGRADED, status: 'False', reason: 'AsPlanned', message: 'the node’s kernel holds the whole plan' };

const conditionsOf = (report: AgentReport): NodeCondition[] => [...report.conditions, degradedOf(report)];

type Abort = { readonly signal?: AbortSignal };

export interface ClusterReporterOptions {
  readonly cluster: Cluster;
  readonly nodeName: string;
  /** Our Node as last seen. */
  readonly node: () => Node | undefined;
  readonly events: EventRecorder;
}

/** Conditions that stand and are no longer reported: our apply without them takes them away, if they were ours. */
const createStaleConditions = () => {
  let reported: ReadonlySet<string> | undefined;
  return {
    areThere(wanted: readonly NodeCondition[], present: readonly { readonly type: string }[]): boolean {
      const types = new Set(wanted.map(({ type }) => type));
      return present.some(
        ({ type }) => !types.has(type) && (reported ? reported.has(type) : type.startsWith(OWN_PREFIX)),
      );
    },
    /** What a section reported that this agent does not have stood at the first report; it is nobody's from then on. */
    applied(wanted: readonly NodeCondition[]): void {
      reported = new Set(wanted.map(({ type }) => type));
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
    if (wanted.every(same) && !stale.areThere(wanted, present)) return stale.applied(wanted);
    const now = new Date().toISOString();
    const conditions = wanted.map((condition) => {
      const before = present.find(({ type, status }) => type === condition.type && status === condition.status);
      return { ...condition, lastTransitionTime: before?.lastTransitionTime ?? now, lastHeartbeatTime: now };
    });
    const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName }, status: { conditions } };
    await client.apply(object, { subresource: 'status', fieldManager: FIELD_MANAGER, force: true, ...signal });
    stale.applied(wanted);
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
      await reportAnnotations(report, seen, signal);
      await reportConditions(report, seen, signal);
      for (const write of report.writes) await write(abort ?? new AbortController().signal);
    },
  };
};
