export { KeeperProtocolError, PROTOCOL_VERSION, type ProtocolFile, type WriteOptions } from './protocol-file.ts';
export { MOST_REJECTIONS, rejections } from './rejections.ts';
export { relayState, type RelayState } from './relay-state.ts';
export { relayTallies, type RelayTallies } from './relay-tallies.ts';
export { type RelayIdentity, relayUnit, type RelayUnit } from './relay-unit.ts';
export { type TunnelPeer, tunnelUnit, type TunnelUnit } from './tunnel-unit.ts';
export { createUnitsReader, unitDevices, unitFile, type Units } from './units-folder.ts';
