export { backoffDelay, type BackoffOptions } from './backoff.ts';
export { type Controller, createController, type Reconcile, type Source, watches } from './controller.ts';
export { createInformer, type Informer, type InformerOptions } from './informer.ts';
export { createElection } from './leader-election.ts';
export { createManager, type Manager } from './manager.ts';
export { leaderMetric } from './runtime-metrics.ts';
export { again, done } from './verdict.ts';
export { inParallel } from './in-parallel.ts';
export { createObjectWrites, type ObjectWrites } from './object-writes.ts';
