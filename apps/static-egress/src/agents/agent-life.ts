import type { EgressNodeSlice } from '@unbounded/crds';
import type { KubeObject } from '@unbounded/kube';

/**
 * Which agents work, by their heartbeats: a number in the status of slice 0 of their node. How old one is counts from when we saw it
 * change, by our clock, which only goes forward. One that was seen first by us, and not yet to change, says nothing about its age.
 */
export interface AgentLife {
  /** A slice as it is now. */
  note(slice: EgressNodeSlice): void;
  /** The Node is gone. */
  forget(nodeUid: string): void;
  /** An agent that was silent and came back counts from when it has sent heartbeats for the timeout: addresses must not move to and fro. */
  isAlive(nodeUid: string): boolean;
  /** Nodes of living agents. */
  alive(): ReadonlySet<string>;
  /**
   * Milliseconds until all is known of these nodes; 0: it is. After our start a living agent is known after its next heartbeat, a dead
   * one after the timeout. A plan before that would take addresses from those whose agents it takes for dead.
   */
  untilKnownMs(nodes: readonly KubeObject[]): number;
}

interface Sign {
  readonly heartbeat: number | undefined;
  readonly sinceMs: number;
  /** We saw it change. */
  readonly hasAge: boolean;
  /** From when on the agent counts as alive. */
  readonly steadyMs: number;
}

/**
 * Agents that start within this time of the first of them, as in a new cluster or after the first rule, count from the same moment: else
 * the first would get addresses that move on to the others right away.
 */
const START_WINDOW_MS = 2000;

export interface AgentLifeOptions {
  readonly timeoutMs: number;
  /** Monotonic, milliseconds. */
  readonly now?: () => number;
}

export const createAgentLife = ({ timeoutMs, now = () => performance.now() }: AgentLifeOptions): AgentLife => {
  const signs = new Map<string, Sign>();
  const isFresh = ({ sinceMs }: Sign): boolean => now() - sinceMs <= timeoutMs;
  const isAlive = (sign: Sign | undefined): boolean =>
    sign !== undefined && sign.heartbeat !== undefined && sign.hasAge && isFresh(sign) && now() >= sign.steadyMs;

  let windowEndMs = Number.NEGATIVE_INFINITY;
  const startMs = (): number => {
    if (now() >= windowEndMs) windowEndMs = now() + START_WINDOW_MS;
    return windowEndMs;
  };

  const next = (before: Sign | undefined, heartbeat: number | undefined): Sign => {
    const sinceMs = now();
    if (!before) return { heartbeat, sinceMs, hasAge: heartbeat === undefined, steadyMs: sinceMs };
    if (before.heartbeat === undefined) return { heartbeat, sinceMs, hasAge: true, steadyMs: startMs() };
    return { heartbeat, sinceMs, hasAge: true, steadyMs: isFresh(before) ? before.steadyMs : sinceMs + timeoutMs };
  };

  return {
    note: ({ spec, status }) => {
      if (spec.index !== 0) return;
      const before = signs.get(spec.nodeUID);
      const heartbeat = status?.heartbeat;
      // A slice that was deleted and made anew has none: no sign is no news.
      if (before && (heartbeat === undefined || heartbeat === before.heartbeat)) return;
      signs.set(spec.nodeUID, next(before, heartbeat));
    },
    forget: (nodeUid) => void signs.delete(nodeUid),
    isAlive: (nodeUid) => isAlive(signs.get(nodeUid)),
    alive: () => new Set([...signs].filter(([, sign]) => isAlive(sign)).map(([nodeUid]) => nodeUid)),
    untilKnownMs: (nodes) => {
      const unknown = nodes.flatMap(({ metadata }) => {
        const sign = signs.get(metadata.uid ?? '');
        return sign && !sign.hasAge ? [sign.sinceMs + timeoutMs - now()] : [];
      });
      return Math.max(0, ...unknown);
    },
  };
};
