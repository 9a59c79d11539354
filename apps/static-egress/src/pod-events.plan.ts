import type { EgressPlan } from '@unbounded/egress';

/** What the user of a pod is told at the pod. */
export interface PodNotice {
  readonly namespace: string;
  readonly name: string;
  readonly reason: 'EgressNotCovered' | 'TooManyEgressRules' | 'EgressDropped';
  readonly note: string;
}

type Selected = EgressPlan['selectedPods'] extends ReadonlyMap<string, infer S> ? S : never;
type Routed = EgressPlan['routedPods'] extends ReadonlyMap<string, infer R> ? R : never;

const familyOf = (text: string): 4 | 6 => (text.includes(':') ? 6 : 4);

/** Families of the pod for which a rule of it has no address: no owner that is awaited, but how the rule is written. */
const droppedOf = ({ pod, routes }: Routed): { readonly reason: 'EgressDropped'; readonly note: string }[] =>
  routes.flatMap(({ route }) =>
    [...new Set(pod.addresses.map(({ family }) => family))]
      .filter((family) => route.destinations.some((text) => familyOf(text) === family))
      .filter((family) => !(route.egress ?? []).some(({ address }) => familyOf(address) === family))
      .map((family) => ({
        reason: 'EgressDropped' as const,
        note: `packets to IPv${family} destinations of ${route.rule} are dropped: the rule has no IPv${family} address that it can use; give it one, or limit its cidr to the other family`,
      })),
  );

const noticesOf = (selected: Selected, routed: Routed | undefined): readonly Pick<PodNotice, 'reason' | 'note'>[] => {
  const { pod, selectedBy, effective } = selected;
  if (pod.isHostNetwork) {
    const note = `${selectedBy[0]!.key} selects the pod and cannot cover it: it has the network of its node (hostNetwork) and leaves with its address`;
    return [{ reason: 'EgressNotCovered', note }];
  }
  const { excess } = effective;
  const tooMany = {
    reason: 'TooManyEgressRules' as const,
    note: `${excess.length} rules are beyond those that a pod can have, the first of them ${excess[0]?.key}; what no earlier one matches is dropped: select the pod by fewer rules`,
  };
  return [...(excess.length > 0 ? [tooMany] : []), ...(routed ? droppedOf(routed) : [])];
};

/** In the order of the pods' UIDs. What passes by itself (an owner that is awaited) is told at the rule alone. */
export const planPodNotices = ({ selectedPods, routedPods }: EgressPlan): readonly PodNotice[] =>
  [...selectedPods.values()].flatMap((selected) => {
    const { namespace, name, uid } = selected.pod;
    return noticesOf(selected, routedPods.get(uid)).map((notice) => ({ namespace, name, ...notice }));
  });
