import { forwardingReasons, nodeConditions } from '@unbounded/crds';
import type { EventRecord, Node } from '@unbounded/kube';
import { createDamper, type Damped } from '@unbounded/membership';

/** What gateways say of their own forwarding, in the condition `UnboundedForwarding` of their Node. */

/** Gateways that say of themselves that echoes are dropped at them, each with why. */
export type NotForwarding = ReadonlyMap<string, string>;

/**
 * As the node's agent says of itself: its reason, since the whole text is its own condition's. It stands in the status of
 * the whole pool, which has bounds: no text of the node's choice does.
 */
export const whyNotForwarding = ({ status }: Node): string | undefined => {
  const said = status?.conditions?.find(({ type }) => type === nodeConditions.forwarding);
  if (said?.status !== 'False') return undefined;
  return forwardingReasons.find((reason) => reason === said.reason) ?? 'unknown reason';
};

interface Stated {
  readonly node: Node;
  readonly why: string | undefined;
}

export interface StatedForwarding extends Omit<Damped<Stated>, 'standing'> {
  readonly notForwarding: NotForwarding;
}

/**
 * All agents read the status of pools: a kubelet that changes its condition to and fro changes them no more often than its Node's other facts,
 * of which these changes take none away.
 * @param elapsed milliseconds on a clock that only goes forward
 */
export const createStatedForwarding = (elapsed: () => number): ((nodes: readonly Node[]) => StatedForwarding) => {
  const damper = createDamper<Stated>({
    elapsed,
    identityOf: ({ node: { metadata } }) => ({ name: metadata.name, uid: metadata.uid ?? '' }),
    hold: (accepted, { node }) => ({ node, why: accepted.why }),
    isSame: (a, b) => a.why === b.why,
    hasKey: () => true,
  });
  return (nodes) => {
    const { standing, ...damped } = damper.accept(nodes.map((node) => ({ node, why: whyNotForwarding(node) })));
    const said = standing.flatMap(({ node, why }) => (why === undefined ? [] : [[node.metadata.name, why] as const]));
    return { ...damped, notForwarding: new Map(said) };
  };
};

export const dampedForwardingEvent = (about: Node): EventRecord => ({
  about,
  type: 'Warning',
  reason: 'ForwardingDamped',
  action: 'ReportForwarding',
  note: `the condition ${nodeConditions.forwarding} changes too often: the status of its pool follows late, at most once a minute`,
});
