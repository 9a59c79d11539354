import { type EgressNodeSlice, egressNodeSliceKind } from '@unbounded/crds';
import type { Problem } from '@unbounded/topology';
import type { PodAttachment } from '../attachment/pods.ts';
import type { SectionContext } from '../section.port.ts';
import {
  type AttachedNetwork,
  attachedNetworks,
  deviceFor,
  foreignAddresses,
  freeAddresses,
  listAddresses,
  type PresentAddresses,
} from './addresses.ts';
import type { Claims } from './claims.ts';
import type { ConfirmGrants } from './grants.ts';
import type { EgressPlan } from './plan/egress-plan.ts';
import { planNodeEgress, withPods } from './plan/node.plan.ts';
import type { LocalPod } from './plan/node-inputs.ts';
import { usableAddresses } from './plan/usable-addresses.plan.ts';
import type { PodDecisions } from './pod-decisions.ts';

/** The plan of egress as things are known now. */

/** Without the lengths of their subnets. */
export const addressesOf = ({ addresses }: PodAttachment): string[] => addresses.map((text) => text.split('/')[0]!);

/** An owner that was away may have been given up meanwhile: only what the kernel holds by right goes on without a word of the API server. */
const withoutLost = (plan: EgressPlan, held: ReadonlySet<string>): EgressPlan => ({
  ...plan,
  addresses: plan.addresses.filter(({ address }) => held.has(address)),
});

interface Known {
  readonly plan: EgressPlan;
  readonly problems: readonly Problem[];
  /** Undefined: the plan is a kept one. */
  readonly slices: readonly EgressNodeSlice[] | undefined;
  readonly networks: readonly AttachedNetwork[];
}

export interface Planned extends Known {
  /** When it was begun, by `performance.now()`: what became of the node's rights since it does not know. */
  readonly begunMs: number;
  /** Addresses that the node may have; those of the plan it can. */
  readonly given: EgressPlan['addresses'];
  /** Those that slices name, to be released or not. */
  readonly assigned: ReadonlySet<string>;
}

export interface PlannerParts {
  readonly decisions: PodDecisions;
  readonly kept: EgressPlan | undefined;
  /** UIDs of pods that cannot send yet, since their ADD has not been answered. */
  readonly adding: ReadonlySet<string>;
  /** Addresses that the node has, by right. */
  readonly held: () => ReadonlySet<string>;
  readonly confirm: ConfirmGrants;
  /** What other hosts have. */
  readonly claims: Pick<Claims, 'stateOf'>;
  readonly apiServices: () => readonly string[];
  /** Objects have come from the API server. */
  readonly onHeard: () => void;
}

const NOTHING: PresentAddresses = { links: [], present: [] };

/** @returns undefined while nothing is known, and nothing was */
export const createEgressPlanner = (
  context: SectionContext,
  { decisions, kept, adding, held, confirm, claims, apiServices, onHeard }: PlannerParts,
): (() => Promise<Planned | undefined>) => {
  const { nodeName: node, net, peers, traffic, attachment } = context;
  const source = context.openInputs(
    { slices: egressNodeSliceKind },
    { slices: { fieldSelector: `spec.nodeName=${node}` } },
  );
  source.onChange(onHeard);
  peers.onChange(context.trigger);
  traffic.onChange(context.trigger);
  const localPods = (): LocalPod[] =>
    attachment.bridgePods
      .list()
      .filter(({ uid }) => !adding.has(uid))
      .map((pod) => ({ uid: pod.uid, addresses: addressesOf(pod), selection: decisions.selectionOf(pod.uid) }));
  let last = kept;
  const known = async (list: () => Promise<PresentAddresses>): Promise<Known | undefined> => {
    const [snapshot, overlay] = [source.snapshot(), peers.current()];
    if (!snapshot || !overlay) {
      const plan = last && withoutLost(withPods(last, localPods()), held());
      return plan && { plan, problems: [], slices: undefined, networks: [] };
    }
    const nodeUid = snapshot.node?.uid;
    // Files need not say which Node it is; a Node that the API server does not have owns nothing.
    const isOfNode = (uid: string): boolean => uid === nodeUid || (nodeUid === undefined && !context.cluster);
    const slices = snapshot.objects.slices.filter(({ spec }) => spec.nodeName === node && isOfNode(spec.nodeUID));
    decisions.listed(new Set(slices.flatMap(({ spec }) => (spec.pods ?? []).map(({ uid }) => uid))));
    const granted = await confirm(slices, held());
    const networks = slices.length === 0 ? [] : attachedNetworks(await list());
    // Connectivity has not told yet right after a start: what it told an agent before this one is true still.
    const overlayDevices = traffic.current()?.devices ?? last?.overlayDevices ?? [];
    const inputs = {
      node,
      slices,
      granted,
      pods: localPods(),
      peers: overlay,
      overlayDevices,
      apiServices: apiServices(),
    };
    const planned = planNodeEgress({ ...inputs, deviceOf: (address) => deviceFor(networks, address) });
    last = planned.plan;
    return { ...planned, slices, networks };
  };
  return async () => {
    const begunMs = performance.now();
    let listed: Promise<PresentAddresses> | undefined;
    const list = (): Promise<PresentAddresses> => (listed ??= listAddresses(net));
    const now = await known(list);
    if (!now) return undefined;
    const { plan, problems } = now;
    const present = plan.addresses.length === 0 ? NOTHING : await list();
    const foreign = foreignAddresses(present, plan.addresses);
    const usable = usableAddresses(plan.addresses, { foreign, had: held() });
    const free = freeAddresses(present, usable.addresses, held(), claims);
    return {
      ...now,
      begunMs,
      plan: { ...plan, addresses: free.addresses },
      problems: [...problems, ...usable.problems, ...free.problems],
      given: plan.addresses,
      assigned: new Set(now.slices?.flatMap(({ spec }) => (spec.owned ?? []).map(({ address }) => address))),
    };
  };
};
