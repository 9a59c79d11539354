import { AddressSet, containsPrefix } from '@unbounded/ip';

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

const exceptions = new WeakMap<Rule, AddressSet>();
/** Most rules have none, and of most it is never asked. */
const exceptionsOf = (rule: Rule): AddressSet => {
  if (rule.except.length === 0) return AddressSet.empty;
  const known = exceptions.get(rule) ?? AddressSet.of(rule.except);
  exceptions.set(rule, known);
  return known;
};

/** Whether the earlier rule takes all packets that the later one matches. */
export const takesAllOf = (earlier: Rule, later: Rule): boolean =>
  later.destinations.every(
    (destination) =>
      earlier.destinations.some((own) => containsPrefix(own, destination)) &&
      !exceptionsOf(earlier).overlaps(destination),
  );
