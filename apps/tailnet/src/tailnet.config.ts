import { TAILNET_RUN_FOLDER } from '@unbounded/config/ownership';
import { blocks, type ConfigOf, choice, duration, healthAddress, option, path, port, text } from '@unbounded/config';
import { TAILNET_SOCKET } from '@unbounded/tailnet-cni';

export const tailnetOptions = {
  nodeName: option(path, 'Name of the Node; not set: the host name.'),
  kubeconfig: option(path, 'Cluster to work on; not set: KUBECONFIG, else the service account of the pod.'),
  socket: option(text(TAILNET_SOCKET), 'Unix socket on which the agent of the node asks for pods.'),
  stateDir: option(text('/var/lib/tailscale-cni'), 'Directory of the identities of devices, in pods/ below it.'),
  runDir: option(text(TAILNET_RUN_FOLDER), 'Directory of the units that the keeper of devices reads.'),
  clusterCidrs: option(
    blocks,
    'Blocks of the cluster besides those of Sites, comma-separated, as that of Services: addresses in them are reached by the pod’s own interface.',
  ),
  tidyInterval: option(duration('30s'), 'Time between looks for pods that are gone.'),
  healthPort: option(port(9988), 'TCP port of /healthz, /readyz and /metrics; 0 takes a free one.'),
  healthAddress,
  logLevel: option(choice(['trace', 'debug', 'info', 'warn', 'error'], 'info'), 'Lowest level that is logged.'),
} as const;
export type TailnetConfig = ConfigOf<typeof tailnetOptions>;
