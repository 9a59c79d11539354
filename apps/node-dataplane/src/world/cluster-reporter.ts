import { type Cluster, cutTexts, type EventRecorder, type Node, NODE_CONDITION_BOUNDS, nodes } from '@unbounded/kube';
import type { Problem } from '@unbounded/topology';
import type { NodeCondition } from '../section.port.ts';
import { createAnnotationWrites } from './annotation-writes.ts';
import type { AgentReport, Reporter } from './reporter.port.ts';

/** Tells the API server about our node: annotations that peers need, conditions and Events for operators. */

const FIELD_MANAGER = 'unbounded-node-dataplane';
/** Condition of the Node: the network works, but not all of it. */
const DEGRADED = 'UnboundedNetworkDegraded';
/** Conditions of sections begin with this (besides those of Kubernetes itself). */
const OWN_PREFIX = 'Unbounded';
/** But for the one that site-membership writes. */
const OF_OTHERS = 'UnboundedNodeAccepted';
/** Of Kubernetes, written by an essential section. */
const NETWORK_UNAVAILABLE = 'NetworkUnavailable';
const mayBeOurs = (type: string): boolean => type.startsWith(OWN_PREFIX) && type !== OF_OTHERS;

const degradedOf = ({ problems }: AgentReport): NodeCondition =>
  problems.length > 0
    ? {
        type: DEGRADED,
        status: 'True',
        reason: problems[0]!.reason,
        message: problems.map(({ message }) => message).join('; '),
      }
    : { type: DEGRADED, status: 'False', reason: 'InSync', message: 'kernel state matches the plan' };

/** That all is well nobody can say while a section has not reported. */
const conditionsOf = (report: AgentReport): NodeCondition[] =>
  [...report.conditions, ...(report.awaiting && report.problems.length === 0 ? [] : [degradedOf(report)])].map(
    (condition) => cutTexts(condition, NODE_CONDITION_BOUNDS),
  );

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
      const mayBeTheirs = (type: string): boolean =>
        mayBeOurs(type) || (awaiting === 'essential' && type === NETWORK_UNAVAILABLE);
      return awaiting ? present.filter(({ type }) => mayBeTheirs(type) && !everReported.has(type)) : [];
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

/** Of problems those that were not there the last time. */
const createNews = () => {
  let told = new Set<string>();
  return (problems: readonly Problem[]): readonly Problem[] => {
    const news = problems.filter(({ message }) => !told.has(message));
    told = new Set(problems.map(({ message }) => message));
    return news;
  };
};

export const createClusterReporter = ({ cluster, nodeName, node, events }: ClusterReporterOptions): Reporter => {
  const client = cluster.client(nodes);
  const stale = createStaleConditions();
  const [ofSections, ofRefusals] = [createNews(), createNews()];
  /** Problems were written before an essential section reported: they are taken away when they end. */
  let isDegradedEarly = false;

  const annotationWrites = createAnnotationWrites();
  const reportAnnotations = ({ annotations: wanted }: AgentReport, seen: Node, signal: Abort): Promise<Problem[]> =>
    annotationWrites.write({ wanted, present: seen.metadata.annotations ?? {} }, (annotations) =>
      client.mergePatch(nodeName, { metadata: { annotations } }, signal),
    );

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

  const tell = (problems: readonly Problem[], action: string, about: Node): void => {
    for (const { reason, message: note } of problems) events.record({ about, type: 'Warning', reason, action, note });
  };

  return {
    async report(report, abort) {
      const signal: Abort = abort ? { signal: abort } : {};
      const seen = node();
      if (!seen) return;
      tell(ofSections(report.problems), 'ApplyPlan', seen);
      for (const event of report.events) events.record({ about: seen, ...event });
      // An essential section that has not reported cannot say what peers need; that something fails is not kept back.
      if (report.awaiting === 'essential') {
        isDegradedEarly ||= report.problems.length > 0;
        if (isDegradedEarly) await reportConditions(report, seen, signal);
        return;
      }
      const refused = await reportAnnotations(report, seen, signal);
      tell(ofRefusals(refused), 'Report', seen);
      await reportConditions({ ...report, problems: [...report.problems, ...refused] }, seen, signal);
    },
  };
};
