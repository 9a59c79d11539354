export { type DeviceState, deviceState, problemText } from './device-state.ts';
export { type DeviceUnit, deviceUnit, networkDigest, type PodNetwork, TAILNET_INTERFACE } from './device-unit.ts';
export { keeperProcesses, type KeeperProcesses } from './keeper-processes.ts';
export { MOST_REJECTIONS, rejections } from './rejections.ts';
export { relayState, type RelayState } from './relay-state.ts';
export { relayTallies, type RelayTallies } from './relay-tallies.ts';
export { type RelayIdentity, relayUnit, type RelayUnit } from './relay-unit.ts';
export { tunnelUnit, type TunnelUnit } from './tunnel-unit.ts';
export { createUnitsReader, deviceUnits, tunnelUnits, unitFile, type UnitKind, unitNames } from './units-folder.ts';
