import { type ConfigOf, controlPlaneOptions, duration, option } from '@unbounded/config';

export const registrarOptions = {
  ...controlPlaneOptions,
  sweepInterval: option(
    duration('5m'),
    'Interval at which the devices of the tailnet are listed: one that was removed or has expired there is registered anew.',
  ),
};
export type RegistrarConfig = ConfigOf<typeof registrarOptions>;

const { kubeconfig, logLevel } = controlPlaneOptions;

/** Of the command that ends the tailnet before an uninstallation. */
export const endTailnetOptions = {
  ...{ kubeconfig, logLevel },
  timeout: option(duration('2m'), 'Time in which all devices must be removed.'),
  settle: option(duration('5s'), 'Time for the agents of nodes after the last device.'),
};
