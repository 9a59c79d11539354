import { EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { egressNodeSliceKind, type EgressNodeSlice } from '@unbounded/crds';
import type { PodAttachment } from '../attachment/pods.ts';
import { EGRESS_CHAINS } from '../kernel/base-chains.ts';
import { createQueue } from '../kernel/in-turn.ts';
import { type Conntrack, createConntrack } from '@unbounded/netlink';
import { createConnections } from './kernel/connections.ts';
import type { Section, SectionContext, SectionPass, SectionType } from '../section.port.ts';
import { createPodMetadataReader } from '../world/pod-metadata.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { type AttachedNetwork, attachedNetworks, deviceFor } from './addresses.ts';
import { egressCondition } from './condition.ts';
import { createEnforcement, type Enforced, isInKernel } from './enforcement.ts';
import { createFence } from './fence.ts';
import { keepEgress, type KeptEgress, readKeptEgress } from './kept-egress.ts';
import { ALWAYS, createContact } from './ownership.ts';
import type { EgressPlan } from './plan/egress-plan.ts';
import { planNodeEgress } from './plan/node.plan.ts';
import type { LocalPod } from './plan/node-inputs.ts';
import { createPodDecisions, type PodDecisions } from './pod-decisions.ts';
import { createAskSelection } from './selection.ts';
import { createSliceReports } from './slice-reports.ts';

/**
 * Static egress at this node: selected pods leave with their egress address, here or at the node that owns it, and never with another one.
 * A pod starts only when the kernel enforces whether it is selected.
 */

const EVERY_MS = 5000;
const ADD_WITHIN_MS = 15_000;

const addressesOf = ({ addresses }: PodAttachment): string[] => addresses.map((text) => text.split('/')[0]!);

/** Pods that are gone keep nothing, also while the objects are away: another may have their addresses. */
const withoutGone = (plan: EgressPlan, pods: readonly LocalPod[]): EgressPlan => {
  const there = new Map(pods.map((pod) => [pod.uid, pod]));
  const steered = plan.steered
    .map((one) => ({ ...one, pods: one.pods.filter(({ uid }) => there.has(uid)) }))
    .filter((one) => one.pods.length > 0);
  return { ...plan, steered };
};

interface Known {
  readonly plan: EgressPlan;
  readonly problems: SectionPass['report']['problems'];
  /** Undefined: the plan is a kept one. */
  readonly slices: readonly EgressNodeSlice[] | undefined;
  readonly networks: readonly AttachedNetwork[];
}

/** @param adding UIDs of pods that cannot send yet, since their ADD has not been answered */
const createPlanner = (
  context: SectionContext,
  decisions: PodDecisions,
  { kept, adding }: { readonly kept: KeptEgress | undefined; readonly adding: ReadonlySet<string> },
) => {
  const { nodeName: node, net, peers, attachment } = context;
  const source = context.openInputs(
    { slices: egressNodeSliceKind },
    { slices: { fieldSelector: `spec.nodeName=${node}` } },
  );
  peers.onChange(context.trigger);
  const localPods = (): LocalPod[] =>
    attachment.bridgePods
      .list()
      .filter(({ uid }) => !adding.has(uid))
      .map((pod) => ({ uid: pod.uid, addresses: addressesOf(pod), selection: decisions.selectionOf(pod.uid) }));
  let last = kept?.plan;
  /** Undefined: nothing is known yet, and nothing was. */
  return async (): Promise<Known | undefined> => {
    const [snapshot, overlay] = [source.snapshot(), peers.current()];
    if (!snapshot || !overlay) {
      return last && { plan: withoutGone(last, localPods()), problems: [], slices: undefined, networks: [] };
    }
    const nodeUid = snapshot.node?.uid;
    const slices = snapshot.objects.slices.filter(
      ({ spec }) => spec.nodeName === node && (nodeUid === undefined || spec.nodeUID === nodeUid),
    );
    decisions.listed(new Set(slices.flatMap(({ spec }) => (spec.pods ?? []).map(({ uid }) => uid))));
    const networks = slices.length === 0 ? [] : await attachedNetworks(net);
    const inputs = { node, nodeUid: nodeUid ?? '', slices, pods: localPods(), peers: overlay };
    const planned = planNodeEgress({ ...inputs, deviceOf: (address) => deviceFor(networks, address) });
    last = planned.plan;
    return { ...planned, slices, networks };
  };
};

/** Writes the file when anything in it is another. */
const createKeeper = ({ kept }: SectionContext, decisions: PodDecisions) => {
  let known = '';
  return (plan: EgressPlan): void => {
    const egress = { plan, freePods: decisions.free() };
    const text = JSON.stringify(egress);
    if (text === known) return;
    known = text;
    keepEgress(kept, egress);
  };
};

const openDecisions = async (context: SectionContext, kept: KeptEgress | undefined): Promise<PodDecisions> => {
  const { attachment, cluster, nft } = context;
  const metadataOf = createPodMetadataReader(cluster);
  const wasActive = await isInKernel({ nft });
  // Pods of before the first agent that knows egress run as they did, until a rule selects them.
  const before = kept || wasActive ? [] : attachment.bridgePods.list().map(({ uid }) => uid);
  return createPodDecisions({
    ask: cluster && createAskSelection(cluster),
    labelsOf: async (pod) => (await metadataOf(pod)).labels,
    free: kept?.freePods ?? before,
  });
};

const openEgress = async (context: SectionContext, conntrack: Conntrack): Promise<Section> => {
  const { attachment, cluster, peers, table, logger, trigger } = context;
  const kept = readKeptEgress(context.kept, logger);
  const decisions = await openDecisions(context, kept);
  const contact = cluster ? createContact(() => peers.heardMs()) : ALWAYS;
  const fence = createFence({ table, ownership: contact, logger });
  const former = (kept?.plan.addresses ?? []).map(({ address }) => address);
  const connections = createConnections(conntrack, kept?.plan);
  const wasActive = await isInKernel(context);
  const enforcement = createEnforcement(context, { fence, connections, wasActive, former });
  const reports = cluster && createSliceReports(cluster, () => contact.heard());
  const adding = new Set<string>();
  const plan = createPlanner(context, decisions, { kept, adding });
  const keep = createKeeper(context, decisions);
  const inTurn = createQueue();
  const logProblems = createProblemLog(logger);
  context.onKernelChange(
    ({ subject, value }) => subject === 'rule' || ('protocol' in value && value.protocol === EGRESS_ROUTE_PROTOCOL),
  );

  /** As things are known now; passes and pods that are attached take turns. */
  const enforce = (): Promise<(Known & Enforced) | undefined> =>
    inTurn(async () => {
      decisions.keepOnly(new Set(attachment.bridgePods.list().map(({ uid }) => uid)));
      const known = await plan();
      if (!known) return undefined;
      const enforced = await enforcement.enforce(known.plan);
      if (enforced.isSettled) keep(known.plan);
      return { ...known, ...enforced, problems: [...known.problems, ...enforced.problems] };
    });

  /** Pods that no slice lists, and of which it is not known that no rule selects them. */
  const askAgain = async (): Promise<void> => {
    const open = decisions.open(attachment.bridgePods.list().filter(({ uid }) => !adding.has(uid)));
    const answers = await Promise.allSettled(open.map((pod) => decisions.decide(pod)));
    if (answers.some((answer) => answer.status === 'fulfilled' && answer.value === 'none')) trigger();
  };

  return {
    async pass() {
      const state = await enforce();
      if (!state) return { nextPassMs: EVERY_MS, report: { problems: [] } };
      if (state.slices) void askAgain();
      const { problems, slices = [], isInForce, held, networks } = state;
      logProblems(problems);
      const condition = egressCondition(state);
      return {
        nextPassMs: EVERY_MS,
        report: {
          problems,
          ...(condition && { conditions: [condition] }),
          ...(reports &&
            slices.length > 0 && {
              write: (signal: AbortSignal) => reports.write({ slices, isInForce, held, networks }, signal),
            }),
        },
      };
    },
    hook: {
      async add(pod) {
        adding.add(pod.uid);
        const selection = await decisions.decide(pod).finally(() => adding.delete(pod.uid));
        if (selection === 'none') return;
        const state = await enforce();
        if (!state?.isInForce)
          throw new Error(
            `egress of pod ${pod.namespace}/${pod.name} is not in force: ${state?.problems[0]?.message ?? 'the node has no plan yet'}`,
          );
      },
      remove: async () => trigger(),
    },
    async stop() {
      fence.stop();
      conntrack.close();
    },
  };
};

/** @param openConntrack of the network namespace that the section is in */
export const egressSection = (openConntrack: () => Conntrack = createConntrack): SectionType => ({
  name: 'egress',
  routeProtocol: EGRESS_ROUTE_PROTOCOL,
  baseChains: Object.values(EGRESS_CHAINS),
  hook: { order: 20, timeoutMs: ADD_WITHIN_MS, unavailable: 'refuse' },
  open: (context) => openEgress(context, openConntrack()),
  async cleanUp({ net }) {
    const addresses = (await net.addresses.list()).filter(({ protocol }) => protocol === EGRESS_ROUTE_PROTOCOL);
    for (const address of addresses) await net.addresses.delete(address);
  },
});
