import type { Logger } from '@unbounded/telemetry';
import { NftablesError } from '@unbounded/nftables';
import { FAMILIES, type Family, familyOf } from '../kernel/nft-family.ts';
import type { SectionTable } from '../kernel/section-table.ts';
import { liveSet } from './plan/tables.plan.ts';

/**
 * Renews, in the kernel, the right to use addresses: elements of sets that expire. Who stands still, or may not renew, becomes silent
 * by the kernel's clock, whatever becomes of this process.
 */
export interface Fence {
  /**
   * From now on these, of which it is known that the node has them, are renewed, and no others.
   * @returns those of which the kernel refused it, and why; never rejects
   */
  hold(addresses: ReadonlySet<string>): Promise<ReadonlyMap<string, Error>>;
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

/** So many in one transaction: one that the kernel refuses silences these alone. */
const AT_ONCE = 512;

/** In which tables the addresses of a family stand. */
const FENCES = { ip: ['ip', 'arp'], ip6: ['ip6'] } as const;

const isWithoutTable = (error: unknown): boolean => error instanceof NftablesError && error.code === 'ENOENT';

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
  let held = new Map<string, Held>();
  const isLapsed = ({ atMs }: Held): boolean => now() - atMs >= holdMs;
  const changeChunk = async (family: Family, elements: readonly string[], isRenewal: boolean): Promise<void> => {
    const set = liveSet(family);
    for (const fence of FENCES[family])
      try {
        // Removed and added in one transaction: one that is added again keeps its time on older kernels.
        await table(fence).changeElements({
          remove: [{ ...set, elements }],
          add: isRenewal ? [{ ...set, elements, timeoutMs: holdMs }] : [],
        });
      } catch (error) {
        // Without the table there is none that could be taken back; that of ARP is not essential.
        if (!isWithoutTable(error) || (isRenewal && fence !== 'arp')) throw error;
      }
  };
  const change = async (addresses: readonly string[], isRenewal: boolean): Promise<Map<string, Error>> => {
    const refused = new Map<string, Error>();
    for (const family of FAMILIES) {
      const elements = addresses.filter((text) => familyOf(text) === family);
      for (let at = 0; at < elements.length; at += AT_ONCE) {
        const chunk = elements.slice(at, at + AT_ONCE);
        const atMs = now();
        try {
          await changeChunk(family, chunk, isRenewal);
          if (isRenewal) for (const one of chunk) if (held.has(one)) held.set(one, { atMs, isRenewed: true });
        } catch (error) {
          for (const one of chunk) refused.set(one, error as Error);
        }
      }
    }
    return refused;
  };
  /** Who stood still for longer than the right lasts goes on with nothing by itself: it cannot know what was decided meanwhile. */
  const renew = async (): Promise<ReadonlyMap<string, Error>> => {
    const due = [...held].filter(([address, last]) => !isLapsed(last) && ownership.isOwner(address));
    return change(
      due.map(([address]) => address),
      true,
    );
  };
  const timer = setInterval(() => {
    void renew().then((refused) => {
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
    async hold(addresses) {
      const known = held;
      const lastOf = (address: string): Held => {
        const last = known.get(address);
        return last === undefined || isLapsed(last) ? { atMs: now(), isRenewed: false } : last;
      };
      held = new Map([...addresses].map((address) => [address, lastOf(address)]));
      return renew();
    },
    async release(addresses) {
      const given = new Set(addresses);
      held = new Map([...held].filter(([address]) => !given.has(address)));
      const [error] = (await change(addresses, false)).values();
      if (error) throw error;
    },
    lapsed: () => new Set([...held].filter(([, last]) => isLapsed(last)).map(([address]) => address)),
    mayUse(address) {
      const last = held.get(address);
      return last !== undefined && last.isRenewed && !isLapsed(last);
    },
    stop: () => clearInterval(timer),
  };
};
