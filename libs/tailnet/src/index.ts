export { RefusedAnnotationError, type StartPolicy } from './asked-device.ts';
export { hostNameOf, type NamedPod } from './host-name.ts';
export { type JoiningPod, planDevice, type WantedDevice } from './joining.ts';
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
  leftBehind,
  type ListedDevice,
  planRegistration,
  type RegistrationPlan,
  type RegistrationStep,
  type RemovalStep,
  strangenessOf,
} from './registration.plan.ts';
export { chooseTailnet, type TailnetChoice, type TailnetServer } from './tailnet-choice.ts';
export {
  planPodRoutes,
  POD_ROUTE_TABLE,
  POD_RULE_PRIORITY,
  type PodRoute,
  type PodRoutes,
  type PodRoutesInput,
  type PodRule,
  TAILNET_PREFIXES,
  type TailnetOverlap,
} from './pod-routes.plan.ts';
export { createKeyReceiver, type KeyReceiver, sealKey, SealedKeyError } from './sealed-key.ts';
