import { choice, type ConfigOf, controlPlaneOptions, duration, option, path } from '@unbounded/config';

export const gatewayHealthOptions = {
  ...controlPlaneOptions,
  relayImage: option(path, 'Image of managed relays (Mesh with provider: managed).'),
  relayImagePullPolicy: option(
    choice(['Always', 'IfNotPresent', 'Never'], 'IfNotPresent'),
    'Pull policy of that image.',
  ),
  dnsServers: option(
    path,
    'DNS servers for names in the annotation external-address: addresses, each with :PORT if needed, comma-separated; not set: those of /etc/resolv.conf.',
  ),
  dnsInterval: option(duration('30s'), 'Interval at which these names are resolved.'),
  relayImagePullSecrets: option(path, 'Names of its image pull Secrets, comma-separated.'),
};

export type GatewayHealthConfig = ConfigOf<typeof gatewayHealthOptions>;
