import { laneId } from './lanes.ts';
import type { NodePlan, WireGuardInterfacePlan } from '../plan.ts';

/**
 * The exchange of a node's WireGuard key, as far as it can be decided without a clock or a kernel. The node alone decides
 * when its next key becomes its current one; with that the lanes of the old key go at its end. So it waits until whoever
 * is there has the lanes of the next key and sends by them.
 */

/** What was seen of a lane at our end. */
export interface LaneSeen {
  /** There was a handshake on it. */
  readonly established: boolean;
  /** Nothing came over it for long enough. */
  readonly quiet: boolean;
}

/** What the probes say of a peer: it does not answer; it does, but does not know of our next key; it knows of it. */
export type ProbeSeen = 'silent' | 'unaware' | 'aware';

export interface RotationFacts {
  readonly plan: Pick<NodePlan, 'wireGuard' | 'probes'>;
  /** Of our current key. */
  readonly generation: number;
  lane(id: string): LaneSeen;
  /** Whether there was a handshake with the node, on any lane, a short time ago. */
  isAlive(node: string): boolean;
  /** Undefined: the node is not probed. */
  probe(node: string): ProbeSeen | undefined;
}

/** Why a peer holds our rotation up. */
export type WaitReason = 'NoHandshake' | 'OldKeyInUse' | 'AgentSilent' | 'Unaware';

/** Lanes of the node's own key of a generation, with the peer of each. */
const lanesOfKey = (interfaces: readonly WireGuardInterfacePlan[], generation: number) =>
  interfaces
    .filter(({ keyGeneration = 0 }) => keyGeneration === generation)
    .flatMap(({ name, peers }) => peers.map(({ node, publicKey }) => ({ node, id: laneId(name, publicKey) })));

const reasonOf = (node: string, facts: RotationFacts): WaitReason | undefined => {
  const { plan, generation } = facts;
  const isTheirs = (lane: { readonly node: string }): boolean => lane.node === node;
  const [old, next] = [generation, generation + 1].map((key) => lanesOfKey(plan.wireGuard, key).filter(isTheirs));
  const probe = facts.probe(node);
  if (old!.length === 0 || !facts.isAlive(node)) return probe === 'unaware' ? 'Unaware' : undefined;
  if (next!.length === 0 || !next!.every(({ id }) => facts.lane(id).established)) return 'NoHandshake';
  if (probe === 'silent') return 'AgentSilent'; // nobody there would send another way
  if (probe === 'unaware') return 'Unaware';
  return old!.every(({ id }) => facts.lane(id).quiet) ? undefined : 'OldKeyInUse';
};

/** The peers that hold our rotation up, by name; when there is none the next key may become the current one. */
export const rotationWaits = (facts: RotationFacts): Map<string, WaitReason> => {
  const nodes = new Set([
    ...lanesOfKey(facts.plan.wireGuard, facts.generation).map(({ node }) => node),
    ...facts.plan.probes.map(({ node }) => node),
  ]);
  return new Map(
    [...nodes].sort().flatMap((node) => {
      const reason = reasonOf(node, facts);
      return reason === undefined ? [] : [[node, reason] as const];
    }),
  );
};

/** Lanes ({@link laneId}) of links that have several: which of them are established decides about what is sent where. */
export const competingLanes = ({ wireGuard }: Pick<NodePlan, 'wireGuard'>): Set<string> => {
  const counts = new Map<string, number>();
  for (const { node } of wireGuard.flatMap(({ peers }) => peers)) counts.set(node, (counts.get(node) ?? 0) + 1);
  const several = wireGuard.flatMap(({ name, peers }) =>
    peers.filter(({ node }) => counts.get(node)! > 1).map(({ publicKey }) => laneId(name, publicKey)),
  );
  return new Set(several);
};
