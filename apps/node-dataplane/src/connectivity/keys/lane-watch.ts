import { competingLanes, laneId, type LaneSeen } from '@unbounded/topology';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';
import type { DeviceState, PeerState } from '@unbounded/wireguard';

/** What the WireGuard interfaces say of lanes, from pass to pass. Of links with a single lane it keeps nothing. */
export interface LaneWatch {
  /** Lanes of links that have several, on which there was a handshake: sticky until they go. */
  readonly established: ReadonlySet<string>;
  /** Takes what was read. Returns whether `established` is another by that. */
  observe(plan: NeutralPlan, states: ReadonlyMap<string, DeviceState>): boolean;
  /** Nothing came over it for so long; a lane that was never observed counts as heard just now. */
  seen(id: string, quietMs: number): LaneSeen;
  /** Whether a new handshake with the node was seen on any lane within the time; one that was there at first counts as new. */
  isAlive(node: string, withinMs: number): boolean;
}

/** A value and since when it is that, on our clock: the machine's may be set at any moment. */
interface Noted {
  readonly value: number | undefined;
  readonly sinceMs: number;
}

const peersById = (plan: NeutralPlan, states: ReadonlyMap<string, DeviceState>): Map<string, [string, PeerState]> =>
  new Map(
    plan.wireGuard.flatMap(({ name, peers }) =>
      peers.flatMap(({ node, publicKey }) => {
        const state = states.get(name)?.peers.find((peer) => peer.publicKey === publicKey);
        return state ? [[laneId(name, publicKey), [node, state]] as const] : [];
      }),
    ),
  );

/** @param now milliseconds on a clock that only goes forward */
export const createLaneWatch = (now: () => number): LaneWatch => {
  let established: ReadonlySet<string> = new Set();
  let heard = new Map<string, Noted>();
  let shaken = new Map<string, Noted & { readonly node: string }>();
  const noted = (before: Noted | undefined, value: number | undefined): Noted =>
    before !== undefined && before.value === value ? before : { value, sinceMs: now() };
  return {
    get established() {
      return established;
    },
    observe(plan, states) {
      const competing = competingLanes(plan);
      if (competing.size === 0 && established.size === 0) return false;
      const before = { heard, shaken };
      const was = established;
      [heard, shaken] = [new Map(), new Map()];
      const found = new Set<string>();
      for (const [id, [node, { rxBytes, latestHandshakeMs }]] of peersById(plan, states)) {
        if (!competing.has(id)) continue;
        heard.set(id, noted(before.heard.get(id), rxBytes));
        shaken.set(id, { node, ...noted(before.shaken.get(id), latestHandshakeMs) });
        if (latestHandshakeMs !== undefined) found.add(id);
      }
      for (const id of was) if (competing.has(id)) found.add(id); // also while its process does not answer
      established = found;
      return found.size !== was.size || [...found].some((id) => !was.has(id));
    },
    seen(id, quietMs) {
      const { sinceMs = now() } = heard.get(id) ?? {};
      return { established: established.has(id), quiet: now() - sinceMs >= quietMs };
    },
    isAlive: (node, withinMs) =>
      shaken
        .values()
        .some((lane) => lane.node === node && lane.value !== undefined && now() - lane.sinceMs <= withinMs),
  };
};
