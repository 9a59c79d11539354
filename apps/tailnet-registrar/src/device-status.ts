import type { TailnetDevice } from '@unbounded/crds';
import { type EventRecorder, type NewCondition, type ResourceClient, withCondition } from '@unbounded/kube';

import { REGISTERED } from './registrar-objects.ts';

/** Why a device is registered, or not yet: the condition `Registered`. */
export type RegisteredReason =
  | 'Registered'
  | 'WaitingForNode'
  | 'KeyGiven'
  | 'PodNotThere'
  | 'ForeignDevice'
  | 'DeviceGone'
  | 'NotRemoved'
  | 'KeyRequestRefused'
  | 'ControlServerUnreachable'
  | 'CredentialsRefused'
  | 'CredentialsMissing'
  | 'NoDeviceKnown'
  | 'TagsRefused'
  | 'RequestRefused';

/** Somebody should look. */
const WARNINGS: ReadonlySet<string> = new Set<RegisteredReason>([
  ...(['ForeignDevice', 'DeviceGone', 'KeyRequestRefused', 'CredentialsMissing', 'CredentialsRefused'] as const),
  ...(['TagsRefused', 'RequestRefused', 'NotRemoved', 'NoDeviceKnown'] as const),
]);

/** The fields of the status that are the registrar's; null: it goes. */
interface OwnFields {
  readonly deviceID?: string | null;
  readonly goneID?: string | null;
  readonly keyID?: string | null;
  readonly keysGiven?: number;
  readonly sealedKey?: NonNullable<TailnetDevice['status']>['sealedKey'] | null;
}

export interface StatusWrite {
  readonly reason: RegisteredReason;
  readonly message: string;
  readonly fields?: OwnFields;
}

const LONGEST_MESSAGE = 1024;

export interface StatusWriter {
  /** Writes what differs. With fields it is refused as a conflict if the record has changed since it was read. */
  write(record: TailnetDevice, write: StatusWrite, signal: AbortSignal): Promise<void>;
}

export const createStatusWriter = (client: ResourceClient<TailnetDevice>, recorder: EventRecorder): StatusWriter => ({
  async write(record, { reason, message, fields = {} }, signal) {
    const status = reason === 'Registered' ? 'True' : 'False';
    const next: NewCondition = { type: REGISTERED, status, reason, message: message.slice(0, LONGEST_MESSAGE) };
    const conditions = withCondition(record.status?.conditions, next, new Date());
    const isNew = conditions !== record.status?.conditions;
    const hasFields = Object.keys(fields).length > 0;
    if (!isNew && !hasFields) return;
    const { name, namespace, uid, resourceVersion } = record.metadata;
    // The uid makes it fail rather than write to a namesake that was created meanwhile.
    const metadata = { uid, ...(hasFields ? { resourceVersion } : {}) };
    const patch = { metadata, status: { ...fields, conditions } };
    await client.mergePatch(name, patch, { namespace, subresource: 'status', signal });
    const before = record.status?.conditions?.find(({ type }) => type === REGISTERED);
    if (before?.reason !== reason && (WARNINGS.has(reason) || reason === 'Registered'))
      recorder.record({
        ...{ about: record, type: status === 'True' ? 'Normal' : 'Warning', reason, action: 'Register' },
        note: next.message,
      });
  },
});
