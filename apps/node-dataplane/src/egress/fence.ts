import type { Logger } from '@unbounded/telemetry';
import { NftablesError } from '@unbounded/nftables';
import { familyOf } from '../kernel/nft-family.ts';
import type { SectionTable } from '../kernel/section-table.ts';
import { liveSet } from './plan/tables.plan.ts';

/**
 * Renews, in the kernel, the right to use addresses: elements of sets that expire. Who stands still, or may not renew, becomes silent
 * by the kernel's clock, whatever becomes of this process.
 */
export interface Fence {
  /** From now on these, of which it is known that the node has them, are renewed, and no others. */
  hold(addresses: ReadonlySet<string>): Promise<void>;
  /** Behind it nothing leaves with these. */
  release(addresses: readonly string[]): Promise<void>;
  /** Of those that are held: whose time ran out. Another node may have them meanwhile: they are renewed when somebody says that they are held. */
  lapsed(): ReadonlySet<string>;
  stop(): void;
}

/** Whether this node owns its addresses now. One implementation: it does until it is told otherwise, while it hears of anybody. */
export interface Ownership {
  isOwner(address: string): boolean;
}

export interface FenceParts {
  readonly table: (family: 'ip' | 'ip6' | 'arp') => Pick<SectionTable, 'changeElements'>;
  readonly ownership: Ownership;
  readonly logger: Logger;
  readonly renewMs?: number;
  readonly holdMs?: number;
  readonly now?: () => number;
}

/** Longer than an agent needs to start anew: its addresses stay, and no connection is reset. */
const HOLD_MS = 8000;
const RENEW_MS = 1000;

/** Tables, and whose addresses stand in them. */
const FENCES = [
  ['ip', 'ip'],
  ['arp', 'ip'],
  ['ip6', 'ip6'],
] as const;

export const createFence = ({
  table,
  ownership,
  logger,
  renewMs = RENEW_MS,
  holdMs = HOLD_MS,
  now = () => performance.now(),
}: FenceParts): Fence => {
  /** When each of the addresses that are held was renewed last. */
  let held = new Map<string, number>();
  const isLapsed = (renewedMs: number): boolean => now() - renewedMs >= holdMs;
  const change = async (addresses: readonly string[], isRenewal: boolean): Promise<void> => {
    for (const [fence, family] of FENCES) {
      const elements = addresses.filter((text) => familyOf(text) === family);
      if (elements.length === 0) continue;
      const set = liveSet(family);
      // Removed and added in one transaction: one that is added again keeps its time on older kernels.
      await table(fence).changeElements({
        remove: [{ ...set, elements }],
        add: isRenewal ? [{ ...set, elements, timeoutMs: holdMs }] : [],
      });
    }
  };
  /** Who stood still for longer than the right lasts goes on with nothing by itself: it cannot know what was decided meanwhile. */
  const renew = async (): Promise<void> => {
    const renewedMs = now();
    const due = [...held].filter(([address, last]) => !isLapsed(last) && ownership.isOwner(address));
    const addresses = due.map(([address]) => address);
    await change(addresses, true);
    for (const address of addresses) if (held.has(address)) held.set(address, renewedMs);
  };
  const timer = setInterval(() => {
    renew().catch((error: unknown) =>
      logger.warn({ error: (error as Error).message }, 'cannot renew the right to use egress addresses'),
    );
  }, renewMs);
  timer.unref();
  return {
    async hold(addresses) {
      const known = held;
      const renewedMs = (address: string): number => {
        const last = known.get(address);
        return last === undefined || isLapsed(last) ? now() : last;
      };
      held = new Map([...addresses].map((address) => [address, renewedMs(address)]));
      await renew();
    },
    async release(addresses) {
      const given = new Set(addresses);
      held = new Map([...held].filter(([address]) => !given.has(address)));
      try {
        await change(addresses, false);
      } catch (error) {
        // Without the table there is none that could be taken back.
        if (!(error instanceof NftablesError && error.code === 'ENOENT')) throw error;
      }
    },
    lapsed: () => new Set([...held].filter(([, last]) => isLapsed(last)).map(([address]) => address)),
    stop: () => clearInterval(timer),
  };
};
