import type { Push } from '@unbounded/status';

/** accepted: the aggregator has it. resync: it does not hold the report that the delta is from. */
export type PushAnswer = 'accepted' | 'resync';

/** Brings a push to an aggregator. @throws Error when there is none, it is away, or it refuses */
export type SendPush = (push: Push, signal: AbortSignal) => Promise<PushAnswer>;
