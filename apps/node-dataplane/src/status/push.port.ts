import type { Push } from '@unbounded/status';

/** accepted: the aggregator has it. resync: it does not hold the report that the delta is from. */
export type PushAnswer = 'accepted' | 'resync';

/** The cluster has no aggregator, as far as the API server knows: it is looked for rarely, since thousands of nodes do. */
export class NoAggregatorError extends Error {
  override readonly name = 'NoAggregatorError';
}

/** Brings a push to an aggregator. @throws NoAggregatorError; Error when it is away, or refuses */
export type SendPush = (push: Push, signal: AbortSignal) => Promise<PushAnswer>;
