import type { ProtectedAddress } from '@unbounded/topology';
import type { Underlay } from './kernel/underlay.ts';

/** What the agent knows besides the objects. */
export interface Measured {
  readonly underlay: Underlay;
  readonly pathMtuBytes: ReadonlyMap<string, number>;
  readonly keys: OwnKeys;
  /** As in LocalNode. */
  readonly established: ReadonlySet<string>;
  /** As in LocalNode. */
  readonly protectedAddresses: readonly ProtectedAddress[];
}

/** The node's own public keys. */
export interface OwnKeys {
  readonly publicKey: string;
  readonly keyGeneration: number;
  readonly nextPublicKey: string | undefined;
}
