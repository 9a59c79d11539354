import { choice, type ConfigOf, controlPlaneOptions, duration, option, path } from '@unbounded/config';

export const gatewayHealthOptions = {
  ...controlPlaneOptions,
  relayImage: option(path, 'Image of the relays that a Mesh asks for (provider: managed).'),
  relayImagePullPolicy: option(
    choice(['Always', 'IfNotPresent', 'Never'], 'IfNotPresent'),
    'When nodes pull that image.',
  ),
  dnsServers: option(
    path,
    'DNS servers for names in the annotation external-address: addresses, each with :PORT if needed, with commas between; not set: those of /etc/resolv.conf.',
  ),
  dnsInterval: option(duration('30s'), 'How often these names are resolved again.'),
  relayImagePullSecrets: option(path, 'Names of Secrets by which they may, with commas between.'),
};

export type GatewayHealthConfig = ConfigOf<typeof gatewayHealthOptions>;
