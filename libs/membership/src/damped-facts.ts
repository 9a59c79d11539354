import type { GatewayPool } from '@unbounded/crds';

import { createDamper, type Damped } from './damping.ts';
import type { NodeFacts } from './node-facts.ts';
import type { NodeProblem } from './node-problem.ts';
import { canKubeletSet, isSelected } from './pool-match.ts';

/** Facts with what a controller knows of them besides, which others may read too. */
interface Stated {
  readonly facts: NodeFacts;
}

export interface FactsDamper<T extends Stated> {
  /** As {@link createDamper}'s; what stands of a node that changes too often has the problem `FactsDamped`. */
  accept(stated: readonly T[], pools: readonly GatewayPool[]): Damped<T>;
}

/** Says nothing of the values: each change of a condition is a write, and an Event. */
const PROBLEM: NodeProblem = {
  reason: 'FactsDamped',
  field: 'metadata, status.addresses',
  message:
    'keys, addresses, protocols, features or labels change too often: each change but the last few is taken over late, at most one a minute, and what was accepted before stands meanwhile; look for what changes them: kubectl get node NODE -o yaml --watch',
};

const texts = new WeakMap<NodeFacts, string>();

/** All that slices, pool status and conditions can say of a node, but for what only others than the node write. */
const textOf = (facts: NodeFacts): string => {
  const known = texts.get(facts);
  if (known !== undefined) return known;
  const text = JSON.stringify([
    facts.internalIPs,
    [facts.externalIPs, facts.externalNames, facts.literalExternalIPs, facts.isExternalAnnotated],
    // null for what is absent
    [facts.wireGuardPublicKey ?? null, facts.wireGuardKeyGeneration ?? null, facts.wireGuardNextPublicKey ?? null],
    facts.tunnelProtocols ?? null,
    facts.features ?? null,
    facts.problems,
  ]);
  texts.set(facts, text);
  return text;
};

const besides = (stated: Stated): string => JSON.stringify({ ...stated, facts: undefined });

const labelsOf = ({ labels }: NodeFacts, isKubelets: boolean): Record<string, string> =>
  Object.fromEntries(Object.entries(labels).filter(([label]) => canKubeletSet(label) === isKubelets));

/** An administrator takes a role away, the allocator gives a block or a locator: all at once, whatever the node does. */
const holdFacts = (accepted: NodeFacts, stated: NodeFacts): NodeFacts => {
  const { siteLabel: _site, wireGuardPort: _port, rotateKey: _rotate, l2Locator: _locator, ...rest } = accepted;
  return {
    ...rest,
    labels: { ...labelsOf(accepted, true), ...labelsOf(stated, false) },
    podCIDRs: stated.podCIDRs,
    podPrefixes: stated.podPrefixes,
    hasPodCIDRs: stated.hasPodCIDRs,
    ...(stated.siteLabel === undefined ? {} : { siteLabel: stated.siteLabel }),
    ...(stated.wireGuardPort === undefined ? {} : { wireGuardPort: stated.wireGuardPort }),
    ...(stated.rotateKey === undefined ? {} : { rotateKey: stated.rotateKey }),
    ...(stated.l2Locator === undefined ? {} : { l2Locator: stated.l2Locator }),
  };
};

/**
 * Bounds how often one node changes slices and pool status. A restarted controller begins anew, with what Nodes state then.
 * @param elapsed milliseconds on a clock that only goes forward
 */
export const createFactsDamper = <T extends Stated>(elapsed: () => number): FactsDamper<T> => {
  let pools: readonly GatewayPool[] = [];
  const isSame = (a: T, b: T): boolean =>
    besides(a) === besides(b) &&
    (a.facts === b.facts ||
      (textOf(a.facts) === textOf(b.facts) &&
        pools.every((pool) => isSelected(pool, a.facts) === isSelected(pool, b.facts))));
  const damper = createDamper<T>({
    elapsed,
    identityOf: ({ facts }) => facts,
    hold: (accepted, stated) => ({ ...accepted, facts: holdFacts(accepted.facts, stated.facts) }),
    isSame,
    hasKey: ({ facts }) => facts.wireGuardPublicKey !== undefined,
  });
  return {
    accept(stated, currentPools) {
      pools = currentPools;
      const { standing, ...result } = damper.accept(stated);
      const told = standing.map((one): T => {
        if (!result.damped.has(one.facts.name)) return one;
        return { ...one, facts: { ...one.facts, problems: [PROBLEM, ...one.facts.problems] } };
      });
      return { standing: told, ...result };
    },
  };
};
