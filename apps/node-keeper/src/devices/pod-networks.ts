import { existsSync } from 'node:fs';
import { type DeviceUnit, networkDigest, problemText } from '@unbounded/keeper-protocol';
import type { Logger } from '@unbounded/telemetry';
import { setUpNetwork, takeNetworkAway } from './command.ts';
import { createNetworkTries } from './network-tries.ts';
import type { DeviceStates } from './states.ts';

/** The networks of pods that are devices: set up when a unit asks for another, and taken away when it goes. */
export interface PodNetworks {
  /** Sets it up unless it stands, has failed a moment ago, or enough are under way; the state tells. `nowMs` never goes back. */
  ensure(unit: DeviceUnit, nowMs: number): Promise<void>;
  /** Whether one was set up in the namespace of the unit, if not as the unit has it now. */
  hasAny(unit: DeviceUnit): boolean;
  /** @returns whether nothing is left of it. @throws Error naming what could not be removed; it is tried again later */
  remove(podUID: string, nowMs: number): Promise<boolean>;
}

export interface PodNetworksOptions {
  readonly podStart: string;
  readonly states: DeviceStates;
  readonly logger: Logger;
}

/** A process each: pods are set up side by side, but a node has other things to do. */
const AT_ONCE = 4;

/** In place of a network: it is to go. */
const NONE = '';

export const createPodNetworks = ({ podStart, states, logger }: PodNetworksOptions): PodNetworks => {
  const tries = createNetworkTries();
  /** Those that this keeper has set up: what one before it left is looked at once. */
  const standing = new Map<string, string>();
  let underWay = 0;
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    underWay++;
    try {
      return await work();
    } finally {
      underWay--;
    }
  };

  const setUp = async (unit: DeviceUnit, digest: string): Promise<void> => {
    const { podUID, netns } = unit;
    const { hasIPv6 } = await counted(() => setUpNetwork(podStart, unit));
    standing.set(podUID, digest);
    tries.forget(podUID);
    states.set(podUID, { netns, network: digest, hasIPv6, starts: states.get(podUID)?.starts ?? 0 });
  };
  const fail = (podUID: string, netns: string, problem: string): void => {
    const before = states.get(podUID) ?? { netns, hasIPv6: false, starts: 0 };
    if (problem !== before.problem) logger.error({ pod: podUID, problem }, 'cannot set up the network of the pod');
    states.set(podUID, { ...before, problem });
  };

  return {
    async ensure(unit, nowMs) {
      const { podUID, netns } = unit;
      const digest = networkDigest(unit);
      if (standing.get(podUID) === digest || !tries.isDue(podUID, digest, nowMs) || underWay >= AT_ONCE) return;
      try {
        await setUp(unit, digest);
      } catch (error) {
        tries.failed(podUID, digest, nowMs);
        fail(podUID, netns, problemText((error as Error).message));
      }
    },
    hasAny({ podUID, netns }) {
      const state = states.get(podUID);
      return state?.network !== undefined && state.netns === netns;
    },
    async remove(podUID, nowMs) {
      const { netns } = states.get(podUID) ?? {};
      // With a namespace goes all that was there.
      if (netns !== undefined && existsSync(netns)) {
        if (!tries.isDue(podUID, NONE, nowMs) || underWay >= AT_ONCE) return false;
        tries.failed(podUID, NONE, nowMs); // unless it is forgotten
        await counted(() => takeNetworkAway(podStart, netns));
      }
      tries.forget(podUID);
      standing.delete(podUID);
      states.remove(podUID);
      return true;
    },
  };
};
