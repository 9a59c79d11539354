import { SILENT_AFTER_MS } from '../forwarding/forwarding.limits.ts';
import type { ForwardingExchange } from '../intake.port.ts';
import type { ForwardingStore } from './forwarding-store.ts';

/**
 * Who is wanted, and what was answered, at all replicas: a viewer asks one, and the node pushes to another. While Redis is away a replica can
 * ask for the nodes alone that push to itself.
 */
export interface ReplicatedForwardingOptions {
  readonly store: ForwardingStore;
  /** While Redis is away. */
  readonly local: ForwardingExchange;
  readonly isUp: () => boolean;
  /** Milliseconds, monotonic. */
  readonly elapsed: () => number;
}

/** Each push asks whether its node is wanted: one question to Redis in this time answers for all of them. */
const WANTED_EVERY_MS = 1000;

/** The nodes that are wanted, a second old at most; while Redis does not say, none. */
const createWantedNodes = ({ store, elapsed }: ReplicatedForwardingOptions) => {
  let [askedAtMs, asking]: [number, Promise<ReadonlySet<string>>] = [-Infinity, Promise.resolve(new Set())];
  return (): Promise<ReadonlySet<string>> => {
    if (elapsed() - askedAtMs >= WANTED_EVERY_MS) {
      askedAtMs = elapsed();
      asking = store.wanted().catch(() => new Set<string>());
    }
    return asking;
  };
};

export const createReplicatedForwarding = (options: ReplicatedForwardingOptions): ForwardingExchange => {
  const { store, local, isUp, elapsed } = options;
  const wantedNodes = createWantedNodes(options);
  const pushedAtMs = new Map<string, number>();
  const wantHere = async (node: string) => {
    for (const [name, atMs] of pushedAtMs) if (elapsed() - atMs > SILENT_AFTER_MS) pushedAtMs.delete(name);
    return pushedAtMs.has(node) ? local.want(node) : 'away';
  };
  return {
    async want(node) {
      if (!isUp()) return wantHere(node);
      return store.want(node).catch(() => wantHere(node));
    },
    async isWanted(node) {
      pushedAtMs.set(node, elapsed());
      return (await local.isWanted(node)) || (isUp() && (await wantedNodes()).has(node));
    },
    async answer(node, forwarding) {
      if (await local.isWanted(node)) await local.answer(node, forwarding);
      if (isUp()) await store.put(node, forwarding).catch(() => {}); // whoever waits asks again, and so is the node
    },
  };
};
