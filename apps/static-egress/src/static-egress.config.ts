import { type ConfigOf, controlPlaneOptions, duration, option, path } from '@unbounded/config';

/** What the explanation of a packet depends on, too. */
export const clusterOptions = {
  kubeconfig: controlPlaneOptions.kubeconfig,
  serviceCidrs: option(
    path,
    'Service CIDRs, comma-separated: no egress address is taken from them; in addition to the addresses that Services have.',
  ),
};

export const staticEgressOptions = {
  ...controlPlaneOptions,
  ...clusterOptions,
  agentTimeout: option(
    duration('15s'),
    'Time without a new heartbeat of its agent after which a node counts as silent; agents send one every 5 s.',
  ),
};
export type StaticEgressConfig = ConfigOf<typeof staticEgressOptions>;
