import type { TailnetDevice } from '@unbounded/crds';
import type { Logger } from '@unbounded/telemetry';

import type { ConfirmedRemovals } from './confirmed-removals.ts';
import type { StatusWriter } from './device-status.ts';
import type { Budget, Misses } from './pauses.ts';
import type { RegistrarClients } from './registrar-objects.ts';
import type { RegistrarMetrics } from './registrar-metrics.ts';
import type { TailnetAccess } from './tailnet-access.ts';

/** What the steps of one record have in common. */
export interface RegistrationContext {
  readonly clients: Pick<RegistrarClients, 'devices' | 'pods'>;
  readonly status: StatusWriter;
  /** All records that the cache has. */
  readonly records: () => readonly TailnetDevice[];
  /** To the tailnet of the record. @throws CredentialsMissingError when nothing says how; TailnetDoubtedError */
  readonly accessTo: (record: TailnetDevice) => TailnetAccess;
  /** Keys that the node of a record gets, by the record's uid. */
  readonly keys: Budget;
  /** Looks for devices that the node of a record names. */
  readonly lookups: Budget;
  /** Devices that nodes name and that are not there. */
  readonly misses: Misses;
  /** Removals of what a record names that was not removed yet. */
  readonly removals: Budget;
  readonly removed: ConfirmedRemovals;
  readonly metrics: Pick<RegistrarMetrics, 'keyGiven'>;
  readonly logger: Logger;
  /** Wall clock, milliseconds. */
  readonly now: () => number;
}

/** How a step ended. */
export type StepResult =
  /** Nothing else is to be done. */
  | { readonly kind: 'done' }
  /** The next step is; this one after that time once more. */
  | { readonly kind: 'next'; readonly afterMs?: number }
  | { readonly kind: 'again'; readonly afterMs: number };

export const DONE: StepResult = { kind: 'done' };

export const NEXT: StepResult = { kind: 'next' };

export const nameOf = ({ metadata: { namespace, name } }: TailnetDevice): string => `${namespace}/${name}`;

/** IDs of the devices of all other records. */
export const boundElsewhere = (
  { metadata: { uid } }: TailnetDevice,
  records: readonly TailnetDevice[],
): ReadonlySet<string> =>
  new Set(
    records.flatMap(({ metadata, status }) =>
      metadata.uid !== uid && status?.deviceID !== undefined ? [status.deviceID] : [],
    ),
  );
