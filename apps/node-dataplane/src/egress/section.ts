import { DEVICES, EGRESS_ROUTE_PROTOCOL } from '@unbounded/config/ownership';
import { type Conntrack, createConntrack, openPacketSocket, type RouteEvent } from '@unbounded/netlink';
import { EGRESS_CHAINS } from '../kernel/base-chains.ts';
import { gathered } from '../kernel/gathered.ts';
import type { Section, SectionContext, SectionPass, SectionStatus, SectionType } from '../section.port.ts';
import { createPodMetadataReader } from '../world/pod-metadata.ts';
import { createProblemLog } from '../world/problem-log.ts';
import { createApiService } from './api-service.ts';
import type { ProbeTimings } from './announce/address-probe.ts';
import type { OpenSocket } from './announce/announced-link.ts';
import { createBegunQuestions } from './begun-questions.ts';
import { createClaims } from './claims.ts';
import { egressCondition, podsOf } from './condition.ts';
import { addressesOf, createEgressPlanner, type Planned } from './egress-planner.ts';
import { createEnforcement, isIdle } from './enforcement.ts';
import { createFence } from './fence.ts';
import { addressesInUse, confirmAll, createConfirmGrants } from './grants.ts';
import { keepEgress, type KeptEgress, readKeptEgress } from './kept-egress.ts';
import { createConnections } from './kernel/connections.ts';
import { isInKernel } from './kernel/traces.ts';
import { createObservations } from './metrics/observations.ts';
import type { PortWatchTimings } from './metrics/port-watch.ts';
import { ALWAYS, createContact } from './ownership.ts';
import type { EgressPlan, PodClass } from './plan/egress-plan.ts';
import { createPodDecisions, type PodDecisions } from './pod-decisions.ts';
import { createAskSelection } from './selection.ts';
import { createSteeredAddresses, ruledAddresses, type SteeredAddresses } from './steered-addresses.ts';
import { createSliceReports, type SliceReports } from './slice-reports.ts';
import { createTurns, type State, type Turns } from './turns.ts';

/**
 * Static egress at this node: selected pods leave with their egress address, here or at the node that owns it, and never with another one.
 * A pod starts only when the kernel enforces whether it is selected.
 */

const EVERY_MS = 5000;
const ADD_WITHIN_MS = 15_000;
/** Pods come and go many at once. Who gets the address of one before the pass does not wait for it: its ADD sees to that. */
const CHANGED_WITHIN_MS = 200;
/** As many addresses as a report may have. */
const MOST_REPORTED = 1024;

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

interface Opening {
  readonly kept: KeptEgress | undefined;
  /** An agent before this one has put something into the kernel. */
  readonly wasActive: boolean;
}

const openDecisions = ({ attachment, cluster }: SectionContext, { kept, wasActive }: Opening): PodDecisions => {
  const metadataOf = createPodMetadataReader(cluster);
  // Pods of before the first agent that knows egress run as they did, until a rule selects them.
  const before = kept || wasActive ? [] : attachment.bridgePods.list().map(({ uid }) => uid);
  return createPodDecisions({
    ask: cluster && createAskSelection(cluster),
    labelsOf: async (pod) => (await metadataOf(pod)).labels,
    free: kept?.freePods ?? before,
  });
};

interface Node {
  readonly turns: Turns;
  readonly decisions: PodDecisions;
  /** UIDs of pods that cannot send yet. */
  readonly adding: Set<string>;
  readonly steered: SteeredAddresses;
  readonly reports: SliceReports | undefined;
  readonly stop: () => void;
}

/** Addresses by whomever made them: it may be one that was given to this node. */
const concernsEgress = ({ subject, value }: RouteEvent, given: ReadonlySet<string>): boolean =>
  subject === 'rule' ||
  ('protocol' in value && value.protocol === EGRESS_ROUTE_PROTOCOL) ||
  (subject === 'address' && given.has(value.address.split('/')[0]!));

const openNode = async (
  context: SectionContext,
  { conntrack, openSocket, probeTimings, holdMs, portWatch }: Sockets,
): Promise<Node> => {
  const { attachment, cluster, nft, peers, table, logger, trigger } = context;
  const kept = readKeptEgress(context.kept, logger);
  // Before anything is awaited: connectivity's first table has the tunnel, if the last one had it.
  if (kept && !isIdle(kept.plan)) context.boundary.set({ devices: [DEVICES.egress] });
  const wasActive = (kept !== undefined && !isIdle(kept.plan)) || (await isInKernel(context));
  const contact = cluster ? createContact(() => peers.heardMs()) : ALWAYS;
  const onHeard = (): void => contact.heard();
  const decisions = openDecisions(context, { kept, wasActive });
  const fence = createFence({ table, ownership: contact, logger, ...(holdMs !== undefined && { holdMs }) });
  const connections = createConnections(conntrack, kept?.plan);
  const former = (kept?.plan.addresses ?? []).map(({ address }) => address);
  const claims = createClaims({
    ...{ open: openSocket, onAnswer: trigger, logger, mayAnnounce: (address) => fence.mayUse(address) },
    ...(probeTimings && { timings: probeTimings }),
  });
  const observed = createObservations(context, { conntrack, fence, timings: portWatch });
  const { traffic } = observed;
  const enforcement = createEnforcement(context, { fence, connections, claims, traffic, wasActive, former });
  const apiService = createApiService({ cluster, before: kept?.plan.apiServices ?? [], onHeard });
  const adding = new Set<string>();
  const steered = createSteeredAddresses(await ruledAddresses(context.net));
  let held = await addressesInUse(nft);
  let given: ReadonlySet<string> = new Set();
  const plan = createEgressPlanner(context, {
    decisions,
    kept: kept?.plan,
    adding,
    held: () => held.difference(fence.lapsed()),
    confirm: cluster ? createConfirmGrants(cluster, logger, onHeard) : confirmAll,
    claims,
    apiServices: () => apiService.addresses(),
    onHeard,
  });
  const planNow = async (): Promise<Planned | undefined> => {
    decisions.keepOnly(new Set(attachment.bridgePods.list().map(({ uid }) => uid)));
    // An API server that does not answer keeps no right from being renewed.
    const refreshed = apiService.refresh();
    if (apiService.addresses().length === 0) await refreshed;
    return plan();
  };
  context.onKernelChange((event) => concernsEgress(event, given));
  const turns = createTurns({
    ...{ plan: planNow, enforcement, steered, observed, keep: createKeeper(context, decisions) },
    onEnforced(state) {
      held = state.held;
      given = new Set(state.given.map(({ address }) => address));
    },
  });
  return {
    ...{ turns, decisions, adding, steered, reports: cluster && createSliceReports(cluster, onHeard) },
    stop() {
      observed.stop();
      claims.close();
      fence.stop();
      conntrack.close();
    },
  };
};

const podsIn = (classes: readonly PodClass[]): number => classes.reduce((sum, { pods }) => sum + pods.length, 0);

const passOf = (state: State, reports: SliceReports | undefined): SectionPass => {
  const { plan, problems, slices = [], isInForce, held, staying, networks } = state;
  const status = (): SectionStatus => ({
    egress: { isInForce, heldAddresses: [...held].sort().slice(0, MOST_REPORTED), steeredPods: podsOf(plan.steered) },
  });
  const condition = egressCondition(state);
  return {
    nextPassMs: EVERY_MS,
    planned: {
      ...{ addresses: plan.addresses.length, peers: plan.peers.length },
      ...{ steered_pods: podsIn(plan.steered), translated_pods: podsIn(plan.translated) },
    },
    report: {
      problems,
      ...(isIdle(plan) ? {} : { status }),
      ...(condition && { conditions: [condition] }),
      ...(reports &&
        slices.length > 0 && {
          write: (signal) => reports.write({ slices, isInForce, held, staying, networks }, signal),
        }),
    },
  };
};

const openEgress = async (context: SectionContext, sockets: Sockets): Promise<Section> => {
  const { attachment, logger, trigger } = context;
  const { decisions, adding, steered, reports, turns, stop } = await openNode(context, sockets);
  const logProblems = createProblemLog(logger);
  const changed = gathered(trigger, CHANGED_WITHIN_MS);
  const asked = createBegunQuestions((pod) => decisions.ask(pod));
  /** Pods that no slice lists, and of which it is not known that no rule selects them. */
  const askAgain = async (): Promise<void> => {
    const pods = attachment.bridgePods.list().filter(({ uid }) => !adding.has(uid));
    if (await decisions.decideOpen(pods)) trigger();
  };

  /** What is left then, connections of before too, is for the next pass: it is asked for. */
  const isInForce = (): Promise<Pick<State, 'isInForce' | 'problems'> | undefined> =>
    new Promise((resolve, reject) => {
      void turns
        .admit(() => resolve({ isInForce: true, problems: [] }))
        .then(resolve, reject)
        .finally(trigger);
    });

  return {
    async pass() {
      const state = await turns.enforce();
      if (!state) return { nextPassMs: EVERY_MS, report: { problems: [] } };
      if (state.slices) void askAgain();
      const problems = [...state.problems, ...(await turns.settle(state))];
      logProblems(problems);
      return passOf({ ...state, problems }, reports);
    },
    hook: {
      begin(pod) {
        if (!decisions.isListed(pod.uid)) asked.begin(pod);
      },
      async add(pod) {
        const { uid, namespace, name } = pod;
        adding.add(uid);
        await decisions.decide(pod, asked.take(pod)).finally(() => adding.delete(uid));
        // Its address may have been that of a pod that was selected.
        if (decisions.selectionOf(uid) === 'none' && !steered.holds(addressesOf(pod))) {
          changed.ask(); // so that it is kept that no rule selects it
          return;
        }
        const state = await isInForce();
        if (state?.isInForce) return;
        const reason = state?.problems[0]?.message ?? 'the node has no plan yet';
        throw new Error(`egress of pod ${namespace}/${name} is not in force: ${reason}`);
      },
      remove: async () => changed.ask(),
    },
    async stop() {
      changed.stop();
      stop();
    },
  };
};

/** Of the network namespace that the section is in, and what tests wait for less long. */
export interface Sockets {
  readonly conntrack: Conntrack;
  readonly openSocket: OpenSocket;
  /** Not set: about a second. */
  readonly probeTimings?: ProbeTimings;
  /** For how long an owner that stands still goes on; not set: 8 s. */
  readonly holdMs?: number;
  /** When ports of egress addresses are looked at; not set: every 30 s, and 80 % are a problem. */
  readonly portWatch?: PortWatchTimings;
}

const openSockets = (): Sockets => ({ conntrack: createConntrack(), openSocket: openPacketSocket });

export const egressSection = (open: () => Sockets = openSockets): SectionType => ({
  name: 'egress',
  routeProtocol: EGRESS_ROUTE_PROTOCOL,
  baseChains: Object.values(EGRESS_CHAINS),
  hook: { order: 20, timeoutMs: ADD_WITHIN_MS, unavailable: 'refuse', concerns: ({ joins }) => joins === undefined },
  async open(context) {
    const sockets = open();
    try {
      return await openEgress(context, sockets);
    } catch (error) {
      sockets.conntrack.close();
      throw error;
    }
  },
});
