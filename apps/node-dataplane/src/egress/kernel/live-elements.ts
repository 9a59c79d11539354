import { NftablesError } from '@unbounded/nftables';
import { FAMILIES, type Family, familyOf } from '../../kernel/nft-family.ts';
import type { SectionTable } from '../../kernel/section-table.ts';
import { liveSet } from '../plan/tables.plan.ts';

/** Elements of the fence's sets in the kernel: addresses that the node may use until they expire. */
export interface LiveElements {
  /** All of them in one transaction. Never rejects: why the kernel refused it. */
  renew(chunk: readonly string[]): Promise<Error | undefined>;
  remove(chunk: readonly string[]): Promise<Error | undefined>;
}

export interface LiveElementsParts {
  readonly table: (family: 'ip' | 'ip6' | 'arp') => Pick<SectionTable, 'changeElements'>;
  readonly holdMs: number;
}

/** So many in one transaction: one that the kernel refuses silences these alone. Not fewer: each interrupts who lists a table meanwhile. */
const AT_ONCE = 1024;

/** In which tables the addresses of a family stand. */
const FENCES = { ip: ['ip', 'arp'], ip6: ['ip6'] } as const;

/** Each of one family. */
export const inChunks = (addresses: readonly string[]): (readonly string[])[] =>
  FAMILIES.flatMap((family) => {
    const own = addresses.filter((text) => familyOf(text) === family);
    return Array.from({ length: Math.ceil(own.length / AT_ONCE) }, (_, index) =>
      own.slice(index * AT_ONCE, (index + 1) * AT_ONCE),
    );
  });

const isWithoutTable = (error: unknown): boolean => error instanceof NftablesError && error.code === 'ENOENT';

export const createLiveElements = ({ table, holdMs }: LiveElementsParts): LiveElements => {
  const change = async (family: Family, elements: readonly string[], isRenewal: boolean): Promise<void> => {
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
  const outcome = async (chunk: readonly string[], isRenewal: boolean): Promise<Error | undefined> => {
    const [first] = chunk;
    if (first === undefined) return undefined;
    return change(familyOf(first), chunk, isRenewal).then(
      () => undefined,
      (error: Error) => error,
    );
  };
  return { renew: (chunk) => outcome(chunk, true), remove: (chunk) => outcome(chunk, false) };
};
