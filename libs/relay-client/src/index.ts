export { type Resolve, systemResolve } from './address-watch.ts';
export {
  externalServices,
  type GatewayLike,
  type ManagedRelay,
  managedServices,
  publicAddresses,
  type ServiceLike,
  waysToManaged,
} from './discovery.ts';
export { type Endpoint, formatEndpoint, parseEndpoint } from './endpoint.ts';
export { ManagedDiscovery } from './managed-discovery.ts';
export { exchangeWith } from './platform-crypto.ts';
export { RelayPool } from './pool.ts';
export type { RelayService } from './relay-set.ts';
export { checkTrust, type RelayTrust, settingsOf, trustDigest } from './trust.ts';
export { newTallies } from './tallies.ts';
export { newProxyTallies, UdpProxy } from './udp-proxy.ts';
