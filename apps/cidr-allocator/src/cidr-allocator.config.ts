import { blocks, choice, type ConfigOf, controlPlaneOptions, duration, option } from '@unbounded/config';

export const cidrAllocatorOptions = {
  ...controlPlaneOptions,
  onExhaustion: option(
    choice(['report', 'exit'], 'report'),
    'On pod CIDR exhaustion: report (condition, Event, metric; other Sites are served) or exit with code 1.',
  ),
  blockCooldown: option(
    duration('60s'),
    'Time for which the pod CIDRs of a deleted Node are not reassigned, unless no other block is free.',
  ),
  serviceCidrs: option(
    blocks,
    'Service CIDRs, comma-separated, from which no pod CIDR is allocated; in addition to those of the API server (ServiceCIDRs, the Service default/kubernetes).',
  ),
};
export type CidrAllocatorConfig = ConfigOf<typeof cidrAllocatorOptions>;
