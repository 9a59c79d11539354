import type { Address, Family } from '@unbounded/ip';

import type { Pool } from '../pools/pool.ts';

/** Of a canonical text. */
export const familyOf = (text: string): Family => (text.includes(':') ? 6 : 4);

/** One address of a rule. */
export interface RuleAddress {
  readonly address: Address;
  /** Canonical. */
  readonly text: string;
  /** What says which nodes can own it, and how; undefined: the nodes that are attached to its subnet. */
  readonly pool: Pool | undefined;
  /** The pool that it is allocated from; undefined for an address that the rule names. */
  readonly allocatedFrom: string | undefined;
  /** False: the rule keeps it, but may not use it for the time being. */
  readonly isUsable: boolean;
}
