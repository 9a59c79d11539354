export { readJoin, RefusedAnnotationError, type StartPolicy } from './asked-device.ts';
export { planDevice } from './joining.ts';
export {
  planRecords,
  type RecordEnd,
  recordEndOf,
  type RecordsInput,
  type RecordsPlan,
  type TailnetPod,
} from './records.plan.ts';
export {
  hasExpired,
  KEY_SECONDS,
  leftBehind,
  type ListedDevice,
  planRegistration,
  type RegistrationStep,
  type RemovalStep,
  strangenessOf,
} from './registration.plan.ts';
export { chooseTailnet, type TailnetChoice, type TailnetServer } from './tailnet-choice.ts';
export { planPodRoutes, POD_ROUTE_TABLE, TAILNET_PREFIXES } from './pod-routes.plan.ts';
export { createKeyReceiver, type KeyReceiver, sealKey, SealedKeyError } from './sealed-key.ts';
