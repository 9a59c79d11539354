import { dirname } from 'node:path';
import type { Logger, Metrics } from '@unbounded/telemetry';
import { type Problem, rotationWaits, type WaitReason } from '@unbounded/topology';
import type { NeutralPlan } from '../../data-path/kernel-plan.ts';
import type { DeviceState } from '@unbounded/wireguard';
import type { PeerReport } from '../health/messages.ts';
import { stateNotWritable } from '../../state/state-faults.ts';
import { keyLifetimeMs } from './key-age.ts';
import type { KeyRing } from './key-ring.ts';
import { isDiskError } from './key-disk.ts';
import { createLaneWatch } from './lane-watch.ts';
import { probeSeen } from './probe-seen.ts';
import { waitingProblems } from './waiting.ts';

/** The exchange of the node's WireGuard key, from pass to pass: when it begins, what it waits for, when it is over. */
export interface KeyRotation {
  readonly ring: KeyRing;
  /** Lanes of links that have several, on which there was a handshake. */
  readonly established: ReadonlySet<string>;
  /** Makes a next key if somebody asks for one, or the key is too old. Returns whether it did. */
  begin(asked: string | undefined): boolean;
  /** Takes what interfaces say, before the first plan and after each that was applied. */
  observe(plan: NeutralPlan, states: ReadonlyMap<string, DeviceState>): void;
  /** After a plan was applied as a whole: goes on if nothing holds the exchange up. Else says what does, when it lasts. */
  advance(applied: Applied): Advanced;
}

interface Applied {
  readonly plan: NeutralPlan;
  /** The plan was made of the objects and keys as they are. */
  readonly isCurrent: boolean;
  /** Every interface has its key, and node-keeper knows where that is. */
  readonly isWhole: boolean;
  readonly peers: readonly PeerReport[];
}

export interface Advanced {
  readonly problems: readonly Problem[];
  /** When the next pass is due at the latest; undefined: as always. */
  readonly nextPassMs?: number;
}

/** Milliseconds. */
export interface RotationTimes {
  /** For so long nothing comes over the old key's lanes before they go. */
  readonly quietMs: number;
  /** A peer with no handshake for longer is off: WireGuard makes one every two minutes while there are packets. */
  readonly aliveMs: number;
  /** For so long probes made with the previous key are answered. */
  readonly previousMs: number;
  /** After this it is told who holds the exchange up. */
  readonly tellMs: number;
}

export const ROTATION_TIMES: RotationTimes = {
  quietMs: 30_000,
  aliveMs: 180_000,
  previousMs: 300_000,
  tellMs: 180_000,
};

export interface RotationOptions {
  readonly ring: KeyRing;
  readonly nodeName: string;
  /** 0: keys do not grow too old. */
  readonly maxAgeMs: number;
  readonly times: RotationTimes;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Milliseconds on a clock that only goes forward: nobody may seem off, or silent, because the time was set. */
  readonly elapsed: () => number;
  readonly metrics: Metrics;
  readonly logger: Logger;
  /** Other keys than before are in the ring. */
  readonly onKeys: (ring: KeyRing) => void;
}

/** A node that probes rarely is heard rarely. */
const PROBES_WITHIN_QUIET = 3;
const POLL_MS = 1000;

const createKeyMetrics = (metrics: Metrics, now: () => number) => {
  const gauge = (name: string, help: string) => metrics.gauge({ name: `unbounded_wireguard_key_${name}`, help });
  const generation = gauge('generation', 'Number of rotations of the WireGuard key of the node.');
  const age = gauge('age_seconds', 'Age of the WireGuard key of the node.');
  const rotating = gauge('rotating', '1 during rotation of the WireGuard key of the node, else 0.');
  return ({ current, next }: KeyRing): void => {
    generation.set(current.generation);
    age.set(Math.max(0, now() - current.sinceMs) / 1000);
    rotating.set(next ? 1 : 0);
  };
};

const waitsOf = (
  { plan, peers }: Applied,
  { ring, times }: RotationOptions,
  lanes: ReturnType<typeof createLaneWatch>,
): Map<string, WaitReason> => {
  const slowest = Math.max(0, ...plan.probes.map(({ intervalMs }) => intervalMs));
  const quietMs = Math.max(times.quietMs, PROBES_WITHIN_QUIET * slowest);
  const probes = probeSeen(peers);
  return rotationWaits({
    plan,
    generation: ring.current.generation,
    lane: (id) => lanes.seen(id, quietMs),
    isAlive: (node) => lanes.isAlive(node, times.aliveMs),
    probe: (node) => probes.get(node),
  });
};

type Step = 'begin' | 'promote' | 'tidy';

/** Steps of the ring that the disk may refuse: then nothing has changed, and the step is due again. */
const createSteps = (ring: KeyRing, logger: Logger) => {
  const refused = new Map<Step, Problem>();
  return {
    /** @returns whether it worked */
    take(step: Step, work: () => unknown): boolean {
      try {
        work();
        refused.delete(step);
        return true;
      } catch (error) {
        if (!isDiskError(error)) throw error;
        if (!refused.has(step)) logger.error({ step, error: error.message }, 'cannot keep a step of the key rotation');
        refused.set(step, stateNotWritable(dirname(ring.current.file), error));
        return false;
      }
    },
    /** The step is not due any more. */
    drop: (step: Step) => void refused.delete(step),
    problems: (): readonly Problem[] => [...refused.values()].slice(0, 1),
  };
};

export const createKeyRotation = (options: RotationOptions): KeyRotation => {
  const { ring, nodeName, maxAgeMs, times, now, elapsed, metrics, logger, onKeys } = options;
  const lanes = createLaneWatch(elapsed);
  const measure = createKeyMetrics(metrics, now);
  const steps = createSteps(ring, logger);
  measure(ring);
  let isSettled = false;
  let waiting: { readonly key: string; readonly sinceMs: number } | undefined;

  /** For how long this process has had the next key. */
  const waitedMs = (key: string): number => {
    if (waiting?.key !== key) waiting = { key, sinceMs: elapsed() };
    return elapsed() - waiting.sinceMs;
  };
  const isTooOld = ({ generation, sinceMs }: KeyRing['current']): boolean =>
    maxAgeMs > 0 && now() - sinceMs > keyLifetimeMs(maxAgeMs, nodeName, generation);
  const promote = (): void => {
    if (!steps.take('promote', () => ring.promote())) return;
    const { generation, publicKey } = ring.current;
    logger.info({ generation, publicKey }, 'key rotation completed');
    onKeys(ring);
  };

  return {
    ring,
    get established() {
      return lanes.established;
    },
    begin(asked) {
      const isAsked = asked !== undefined && asked !== ring.honoured;
      if (ring.next || ring.previous || !(isAsked || isTooOld(ring.current))) {
        steps.drop('begin');
        return false;
      }
      if (!steps.take('begin', () => ring.begin(isAsked ? asked : undefined))) return false;
      const { generation, publicKey } = ring.next!;
      logger.info({ generation, publicKey, because: isAsked ? asked : 'of its age' }, 'key rotation started');
      onKeys(ring);
      return true;
    },
    observe(plan, states) {
      isSettled = !lanes.observe(plan, states); // else the kernel sends by another lane than the next plan
    },
    advance(applied) {
      measure(ring);
      const { previous } = ring;
      steps.take('tidy', () => ring.tidy(applied.isWhole));
      if (ring.previous !== previous) onKeys(ring);
      const { next } = ring;
      if (!next) return { problems: steps.problems() };
      const waits = waitsOf(applied, options, lanes);
      const waited = waitedMs(next.publicKey);
      if (waits.size === 0 && applied.isCurrent && isSettled && waited >= times.quietMs) {
        promote();
        return { problems: steps.problems(), nextPassMs: ring.next ? POLL_MS : 0 };
      }
      if (waited < times.tellMs) return { problems: steps.problems(), nextPassMs: POLL_MS };
      return { problems: [...steps.problems(), ...waitingProblems(next.generation, waits)] };
    },
  };
};
