import type { Condition } from '@unbounded/crds';

/** A statement about a Network: when it last changed is added where it is written. */
export type NetworkCondition = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>;
