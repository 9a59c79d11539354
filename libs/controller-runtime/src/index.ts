export { backoffDelay, type BackoffOptions } from './backoff.ts';
export {
  type Controller,
  type ControllerOptions,
  createController,
  type Reconcile,
  type Source,
  watches,
} from './controller.ts';
export { type Change, createInformer, type Informer, type InformerOptions } from './informer.ts';
export { createElection, type Election, type ElectionOptions } from './leader-election.ts';
export { createManager, type Manager, type ManagerOptions } from './manager.ts';
export { leaderMetric } from './runtime-metrics.ts';
export { again, done, reject, type Verdict } from './verdict.ts';
export { type QueueObserver, WorkQueue, type WorkQueueOptions } from './work-queue.ts';
export { inParallel } from './in-parallel.ts';
export { createObjectWrites, type ObjectWrites, type ObjectWritesOptions } from './object-writes.ts';
