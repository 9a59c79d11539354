import { annotations, NODE_FEATURES } from '@unbounded/crds';
import { type Cluster, type EventRecorder, type Node, nodes } from '@unbounded/kube';
import { listed } from '../paths/moves.ts';
import { createGatewayReporter } from './gateway-reporter.ts';
import type { NodeReport, Reporter } from './source.port.ts';

/** Tells the API server about our node: annotations that peers need, conditions and Events for operators. */

const FIELD_MANAGER = 'unbounded-node-dataplane';
/** Condition of the Node besides NetworkUnavailable: the network works, but not all of it. */
const DEGRADED = 'UnboundedNetworkDegraded';

/** Condition of a Node with peers that have a relay: True while packets to any of them go over it. */
const RELAYED = 'UnboundedRelayed';

type ConditionStatus = 'True' | 'False';
interface NodeCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

const relayedOf = ({ paths }: NodeReport): NodeCondition[] => {
  if (!paths) return [];
  const { total, relayed } = paths;
  return relayed.length === 0
    ? [{ type: RELAYED, status: 'False', reason: 'Direct', message: `all of ${total} paths are direct` }]
    : [
        {
          type: RELAYED,
          status: 'True',
          reason: 'ByRelay',
          message: `${relayed.length} of ${total} paths go over the relay: ${listed(relayed, ', ')}`,
        },
      ];
};

const conditionsOf = (report: NodeReport): NodeCondition[] => [...networkOf(report), ...relayedOf(report)];

const networkOf = ({ networkReady, problems }: NodeReport): NodeCondition[] => [
  networkReady
    ? {
        type: 'NetworkUnavailable',
        status: 'False',
        reason: 'UnboundedIsUp',
        message: 'the first plan has been applied',
      }
    : {
        type: 'NetworkUnavailable',
        status: 'True',
        reason: 'UnboundedIsStarting',
        message: 'no plan has been applied yet',
      },
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
    : { type: DEGRADED, status: 'False', reason: 'AsPlanned', message: 'the node’s kernel holds the whole plan' },
];

/** null: not there. The keys change together, in one patch. */
const annotationsOf = (report: NodeReport): Record<string, string | null> => ({
  [annotations.wireGuardPublicKey]: report.publicKey,
  [annotations.wireGuardKeyGeneration]: report.keyGeneration === 0 ? null : String(report.keyGeneration),
  [annotations.wireGuardNextPublicKey]: report.nextPublicKey ?? null,
  ...(report.tunnelMtuBytes === undefined ? {} : { [annotations.tunnelMtu]: String(report.tunnelMtuBytes) }),
  [annotations.tunnelProtocols]: report.protocols.join(','),
  [annotations.features]: NODE_FEATURES.join(','),
});

type Abort = { readonly signal?: AbortSignal };

export interface ClusterReporterOptions {
  readonly cluster: Cluster;
  readonly nodeName: string;
  /** Our Node as last seen. */
  readonly node: () => Node | undefined;
  readonly events: EventRecorder;
}

/** What happened since the last report, as Events of the Node. */
const recordHappenings = (events: EventRecorder, { moves, podDrops = [] }: NodeReport, about: Node): void => {
  if (moves.length > 0)
    events.record({ about, type: 'Normal', reason: 'PathMoved', action: 'ChoosePath', note: listed(moves, '; ') });
  if (podDrops.length > 0) {
    const note = listed(podDrops, '; ');
    events.record({ about, type: 'Warning', reason: 'PodFramesDropped', action: 'GuardPods', note });
  }
};

export const createClusterReporter = ({ cluster, nodeName, node, events }: ClusterReporterOptions): Reporter => {
  const client = cluster.client(nodes);
  const gateway = createGatewayReporter(cluster, nodeName);
  let toldProblems = new Set<string>();

  const reportAnnotations = async (report: NodeReport, seen: Node, signal: Abort): Promise<void> => {
    const wanted = annotationsOf(report);
    const present = seen.metadata.annotations ?? {};
    if (Object.entries(wanted).some(([name, value]) => (present[name] ?? null) !== value)) {
      await client.mergePatch(nodeName, { metadata: { annotations: wanted } }, signal);
    }
  };

  const reportConditions = async (report: NodeReport, seen: Node, signal: Abort): Promise<void> => {
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
    const isRelayedStale = !report.paths && present.some(({ type }) => type === RELAYED);
    if (wanted.every(same) && !isRelayedStale) return;
    const now = new Date().toISOString();
    const conditions = wanted.map((condition) => {
      const before = present.find(({ type, status }) => type === condition.type && status === condition.status);
      return { ...condition, lastTransitionTime: before?.lastTransitionTime ?? now, lastHeartbeatTime: now };
    });
    const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName }, status: { conditions } };
    await client.apply(object, { subresource: 'status', fieldManager: FIELD_MANAGER, force: true, ...signal });
  };

  const recordNewProblems = ({ problems }: NodeReport, seen: Node): void => {
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
      recordHappenings(events, report, seen);
      await reportAnnotations(report, seen, signal);
      await reportConditions(report, seen, signal);
      await gateway.report(report.routes, signal);
    },
  };
};
