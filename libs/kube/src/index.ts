export {
  ApiError,
  IdleError,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  ignoreGone,
  isNotFound,
  NoAnswerError,
  TransportError,
} from './api-error.ts';
export type { ListOptions, ResourceClient, WatchEvent } from './client.ts';
export { type Cluster, clientOf, coreClients } from './cluster.ts';
export { applyStatus } from './apply-status.ts';
export { type NewCondition, withCondition } from './conditions.ts';
export type { Connection } from './connection.ts';
export { ensureCrds } from './ensure-crds.ts';
export { setFinalizer } from './finalizer.ts';
export { isObjectName } from './object-name.ts';
export { createEventRecorder, type EventRecord, type EventRecorder } from './event-recorder.ts';
export { cutTexts, EVENT_BOUNDS, MOST_NODE_CONDITIONS, NODE_CONDITION_BOUNDS } from './text-bounds.ts';
export type * from './objects.ts';
export * from './resources.ts';
export { readyEndpoints } from './ready-endpoints.ts';
export { withoutImages } from './trim.ts';
