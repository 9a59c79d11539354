export { type Codec, decode, encode } from './codec.ts';
export { type EchoAddresses, echoAddresses } from './echo.ts';
export {
  type Endpoint,
  endpointV4,
  endpointV6,
  innerMac,
  lpmKeyV4,
  lpmKeyV6,
  type NextHop,
  type Protocol,
} from './endpoints.ts';
export { type Brought, brought, forwarderKey } from './forwarders.ts';
export { GROUP_MEMBERS, type GroupMember, groupKey, nexthopGroup } from './groups.ts';
export { LAYOUT_VERSION } from '#shape';
export { layoutFingerprint, MAPS } from './layout.ts';
export { type LocalAddresses, localAddresses } from './locals.ts';
export { configKey, counter, type EncapConfig, encapConfig, type Stat, STATS, statsKey } from './stats.ts';
