export { explain, type Explanation } from './explain.ts';
export { type EgressPlan, planEgress } from './plan.ts';
export { namedServices, selectsByLabels, serviceSelects } from './pods/selects-pod.ts';
export { planSliceChanges, type SliceChange, withoutGainsOf } from './slices/changes.plan.ts';
export { fingerprint } from './rendezvous.ts';
export type { Claim, EgressNode, EgressPod, EgressSnapshot, FormerGrant } from './snapshot.ts';
export { isReleaseConfirmed } from './owners/grants.ts';
