export {
  ApiError,
  isConflict,
  isExpired,
  isForbidden,
  isInvalid,
  ignoreGone,
  isNotFound,
  type Status,
  TransportError,
} from './api-error.ts';
export {
  createClient,
  type JsonPatchOperation,
  type ListOptions,
  type Page,
  type ResourceClient,
  type WatchEvent,
  type WatchOptions,
  type WriteOptions,
} from './client.ts';
export { type Cluster, clientOf, type ClusterOptions, coreClients, openCluster } from './cluster.ts';
export { applyStatus, type ApplyStatusOptions } from './apply-status.ts';
export { changedConditions, type NewCondition, withCondition } from './conditions.ts';
export { connect, type Connection, ConnectionError } from './connection.ts';
export { ensureCrds } from './ensure-crds.ts';
export { type FinalizerOptions, setFinalizer } from './finalizer.ts';
export { createEventRecorder, type EventRecord, type EventRecorder } from './event-recorder.ts';
export type * from './objects.ts';
export * from './resources.ts';
export { withoutImages } from './trim.ts';
export { type ApiRequest, createTransport, type RequestObserver, type Transport } from './transport.ts';
