export { fdbEntryName, neighborName } from './entry-names.ts';
export { isStationMac, localMac, macOctets, macText } from './mac.ts';
export { networkMtu, SRV6_OVERHEAD_BYTES } from './mtu.ts';
export { assignNumbers, type NumberedNetwork } from './numbers.ts';
export { planL2 } from './plan.ts';
export type { L2Plan, L2Problem, PlannedNeighbor, PlannedNetwork, PlannedPort, PlannedStation } from './planned.ts';
export { chooseAddresses, type Pool, PoolExhaustedError } from './pool.ts';
export { BEHAVIORS, type Behavior, checkLocator, sidOf } from './sid.ts';
export { endpointKey, type L2Snapshot } from './snapshot.ts';
