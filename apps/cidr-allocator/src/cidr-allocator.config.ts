import { choice, type ConfigOf, controlPlaneOptions, duration, option, path } from '@unbounded/config';

export const cidrAllocatorOptions = {
  ...controlPlaneOptions,
  onExhaustion: option(
    choice(['report', 'exit'], 'report'),
    'When no block is free: report (condition, Event, metric; the rest goes on) or exit with code 1.',
  ),
  blockCooldown: option(
    duration('60s'),
    'How long the pod CIDRs of a deleted Node are given to no other, unless nothing else is free.',
  ),
  serviceCidrs: option(
    path,
    'Ranges of Service addresses, with commas between, from which no pod gets an address; besides those that the API server tells (ServiceCIDRs, the Service default/kubernetes).',
  ),
};
export type CidrAllocatorConfig = ConfigOf<typeof cidrAllocatorOptions>;
