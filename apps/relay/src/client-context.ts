import type { BlockPool } from '@unbounded/relay-protocol';

import type { Admission } from './admission.ts';
import type { AllowedKeys } from './allowed-keys.ts';
import type { Client } from './client.ts';
import type { AuthPolicy, Directory } from './directory.ts';
import type { Verifier } from './handshake.ts';
import type { Holds } from './holds.ts';
import type { ReadSlab } from './memory.ts';
import type { OutboxShared } from './outbox.ts';
import type { Round } from './round.ts';
import type { Tallies } from './tallies.ts';

export interface ClientLimits {
  readonly registerDeadlineMs: number;
  readonly proofDeadlineMs: number;
  readonly idleTimeoutMs: number;
  readonly writeTimeoutMs: number;
  /** What one client may send; 0: any amount. */
  readonly bytesPerSecond: number;
}

/** What all clients of a relay have in common. */
export interface ClientContext {
  readonly policy: AuthPolicy;
  readonly limits: ClientLimits;
  readonly admission: Admission;
  /** Which keys may be registered; undefined: any. */
  readonly allowed: Pick<AllowedKeys, 'has'> | undefined;
  readonly slab: ReadSlab;
  readonly partials: BlockPool;
  readonly round: Round;
  readonly outboxes: OutboxShared;
  readonly directory: Directory;
  readonly verifier: Verifier;
  readonly holds: Holds;
  readonly tallies: Tallies;
  /** The client's connection has ended. */
  readonly onEnded: (client: Client) => void;
  nextSession: bigint;
}
