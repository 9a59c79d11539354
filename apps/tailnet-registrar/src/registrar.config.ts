import { type ConfigOf, controlPlaneOptions, duration, option } from '@unbounded/config';

export const registrarOptions = {
  ...controlPlaneOptions,
  sweepInterval: option(
    duration('5m'),
    'Interval at which the devices of the tailnet are listed: one that was removed or has expired there is registered anew.',
  ),
};
export type RegistrarConfig = ConfigOf<typeof registrarOptions>;
