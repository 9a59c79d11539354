import { choice, type ConfigOf, controlPlaneOptions, option } from '@unbounded/config';

export const cidrAllocatorOptions = {
  ...controlPlaneOptions,
  onExhaustion: option(
    choice(['report', 'exit'], 'report'),
    'When no block is free: report (condition, Event, metric; the rest goes on) or exit with code 1.',
  ),
};
export type CidrAllocatorConfig = ConfigOf<typeof cidrAllocatorOptions>;
