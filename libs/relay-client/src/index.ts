export { type Resolve, systemResolve } from './address-watch.ts';
export { type ClientEvents, type ClientOptions, type ClientSettings, type ClientState, RelayClient } from './client.ts';
export { type Clock, systemClock, type Timer } from './clock.ts';
export { type Dial, dialWith, type TlsSettings } from './dial.ts';
export {
  externalServices,
  type GatewayLike,
  type ManagedRelay,
  managedServices,
  publicAddresses,
  type NodeLike,
  type ServiceLike,
  waysToManaged,
} from './discovery.ts';
export { DEFAULT_PORT, type Endpoint, EndpointSyntaxError, formatEndpoint, parseEndpoint } from './endpoint.ts';
export { ManagedDiscovery, type ManagedDiscoveryOptions } from './managed-discovery.ts';
export { type Exchange, exchangeWith } from './platform-crypto.ts';
export { type PeerSource, type PoolOptions, type PoolState, type RelayPeer, RelayPool } from './pool.ts';
export type { RelayService } from './relay-set.ts';
export type { OnPacket } from './route.ts';
export type { EndReason, Identity, SessionEnd } from './session.ts';
export { checkTrust, type RelayTrust, settingsOf, trustDigest } from './trust.ts';
export { newTallies, type Tallies } from './tallies.ts';
export { newProxyTallies, UdpProxy, type UdpProxyOptions, type UdpProxyTallies } from './udp-proxy.ts';
