import { compareTexts, firstDifference } from '../order.ts';
import type { Rule } from './rule.ts';

const WITHOUT_CIDR = -1;
const cidrLength = ({ cidr }: Rule): number => cidr?.length ?? WITHOUT_CIDR;
const clusterFirst = ({ object }: Rule): number => (object.kind === 'ClusterStaticEgressIP' ? 0 : 1);

/**
 * Negative: `a` serves a packet that both match. Rules of the cluster first, then the lowest priority, the longest cidr, the
 * oldest object, the first by name. The order depends on no packet, so that each pod has one list of routes.
 */
export const comparePrecedence = (a: Rule, b: Rule): number =>
  firstDifference(
    clusterFirst(a) - clusterFirst(b),
    a.priority - b.priority,
    cidrLength(b) - cidrLength(a),
    compareTexts(a.object.createdAt, b.object.createdAt),
    compareTexts(a.object.key, b.object.key),
    a.index - b.index,
  );

/** Whether the earlier rule takes all packets that the later one matches. */
export const takesAllOf = (earlier: Rule, later: Rule): boolean =>
  later.destinations.every((destination) => earlier.matched.covers(destination));
