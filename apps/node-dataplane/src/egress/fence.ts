import type { Logger } from '@unbounded/telemetry';
import { createQueue } from '../kernel/in-turn.ts';
import { createLiveElements, inChunks, type LiveElementsParts } from './kernel/live-elements.ts';

/**
 * Renews, in the kernel, the right to use addresses: elements of sets that expire. Who stands still, or may not renew, becomes silent
 * by the kernel's clock, whatever becomes of this process.
 */
export interface Fence {
  /**
   * From now on these are renewed, and no others.
   * @param knownMs when it was known that the node has them: a right that ran out since is not renewed
   * @returns those of which the kernel refused it, and why; never rejects
   */
  hold(addresses: ReadonlySet<string>, knownMs: number): Promise<ReadonlyMap<string, Error>>;
  /** Behind it nothing leaves with these. */
  release(addresses: readonly string[]): Promise<void>;
  /** Of those that are held: whose time ran out. Another node may have them meanwhile: they are renewed when somebody says that they are held. */
  lapsed(): ReadonlySet<string>;
  /** It is held, was renewed by this process, and its time is not over. */
  mayUse(address: string): boolean;
  stop(): void;
}

/** Whether this node owns its addresses now. One implementation: it does until it is told otherwise, while it hears of anybody. */
export interface Ownership {
  isOwner(address: string): boolean;
}

export interface FenceParts {
  readonly table: LiveElementsParts['table'];
  readonly ownership: Ownership;
  readonly logger: Logger;
  readonly renewMs?: number;
  readonly holdMs?: number;
  readonly now?: () => number;
}

/** Longer than an agent needs to start anew: its addresses stay, and no connection is reset. */
const HOLD_MS = 8000;
const RENEW_MS = 1000;

interface Held {
  /** When it was renewed last, or was said to be held. */
  readonly atMs: number;
  readonly isRenewed: boolean;
}

export const createFence = ({
  table,
  ownership,
  logger,
  renewMs = RENEW_MS,
  holdMs = HOLD_MS,
  now = () => performance.now(),
}: FenceParts): Fence => {
  const elements = createLiveElements({ table, holdMs });
  let held = new Map<string, Held>();
  const isLapsed = ({ atMs }: Held, nowMs = now()): boolean => nowMs - atMs >= holdMs;
  /** Who stood still for longer than the right lasts goes on with nothing by itself: it cannot know what was decided meanwhile. */
  const renewNow = async (): Promise<ReadonlyMap<string, Error>> => {
    const due = [...held].filter(([address, last]) => !isLapsed(last) && ownership.isOwner(address));
    const refused = new Map<string, Error>();
    for (const chunk of inChunks(due.map(([address]) => address))) {
      const atMs = now();
      const error = await elements.renew(chunk);
      for (const address of chunk)
        if (error) refused.set(address, error);
        else if (held.has(address)) held.set(address, { atMs, isRenewed: true });
    }
    return refused;
  };
  // In turn: what is released is not renewed by who began before.
  const inTurn = createQueue();
  const renew = (): Promise<ReadonlyMap<string, Error>> => inTurn(renewNow);
  let isRenewing = false;
  const timer = setInterval(() => {
    if (isRenewing) return;
    isRenewing = true;
    void renew().then((refused) => {
      isRenewing = false;
      const [error] = refused.values();
      if (error)
        logger.warn(
          { error: error.message, addresses: refused.size },
          'cannot renew the right to use egress addresses',
        );
    });
  }, renewMs);
  timer.unref();
  return {
    async hold(addresses, knownMs) {
      const known = held;
      const lastOf = (address: string): Held => {
        const last = known.get(address);
        return last === undefined || isLapsed(last, knownMs) ? { atMs: knownMs, isRenewed: false } : last;
      };
      held = new Map([...addresses].map((address) => [address, lastOf(address)]));
      return renew();
    },
    async release(addresses) {
      const given = new Set(addresses);
      held = new Map([...held].filter(([address]) => !given.has(address)));
      const errors: (Error | undefined)[] = [];
      await inTurn(async () => {
        for (const chunk of inChunks(addresses)) errors.push(await elements.remove(chunk));
      });
      for (const error of errors) if (error) throw error;
    },
    lapsed: () => new Set([...held].filter(([, last]) => isLapsed(last)).map(([address]) => address)),
    mayUse(address) {
      const last = held.get(address);
      return last !== undefined && last.isRenewed && !isLapsed(last);
    },
    stop: () => clearInterval(timer),
  };
};
