import { blocks, type ConfigOf, controlPlaneOptions, duration, option } from '@unbounded/config';

/** What the explanation of a packet depends on, too. */
export const clusterOptions = {
  kubeconfig: controlPlaneOptions.kubeconfig,
  serviceCidrs: option(
    blocks,
    'Service CIDRs, comma-separated: no egress address is taken from them; in addition to those of the API server (ServiceCIDRs) and to the addresses that Services have.',
  ),
};

export const staticEgressOptions = {
  ...controlPlaneOptions,
  ...clusterOptions,
  agentTimeout: option(
    duration('15s'),
    'Time without a new heartbeat of its agent after which a node counts as silent; agents send one every 5 s.',
  ),
  ownerGrace: option(
    duration('30s'),
    'Time for which a node whose Node was deleted keeps its addresses: the machine may still run, and falls silent by itself after 23 s.',
  ),
};
export type StaticEgressConfig = ConfigOf<typeof staticEgressOptions>;
