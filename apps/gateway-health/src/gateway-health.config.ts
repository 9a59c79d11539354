import { choice, type ConfigOf, controlPlaneOptions, option, path } from '@unbounded/config';

export const gatewayHealthOptions = {
  ...controlPlaneOptions,
  relayImage: option(path, 'Image of the relays that a Mesh asks for (provider: managed).'),
  relayImagePullPolicy: option(
    choice(['Always', 'IfNotPresent', 'Never'], 'IfNotPresent'),
    'When nodes pull that image.',
  ),
  relayImagePullSecrets: option(path, 'Names of Secrets by which they may, with commas between.'),
};

export type GatewayHealthConfig = ConfigOf<typeof gatewayHealthOptions>;
