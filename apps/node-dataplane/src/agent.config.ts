import { join } from 'node:path';
import { choice, type ConfigOf, flag, healthAddress, option, path, port, text, textOr, whole } from '@unbounded/config';
import {
  CNI_CONF_FOLDER,
  CNI_SOCKET,
  KEEPER_UNITS,
  KEY_FOLDER,
  PIN_FOLDER,
  STATE_FOLDER,
} from '@unbounded/config/ownership';
import { DEFAULT_NAMESPACE } from '@unbounded/crds';

/** Beside the bundle in the checkout and in the image. */
const beside = (relative: string): string => join(import.meta.dirname, '../../..', relative);

export const agentOptions = {
  nodeName: option(textOr('NODE_NAME'), 'The Node that this agent serves; NODE_NAME when not given.'),
  kubeconfig: option(path, 'Cluster to follow; not set: KUBECONFIG, else the service account of the pod.'),
  manifestsDir: option(path, 'Directory of YAML manifests to read the objects from, instead of an API server.'),
  dataplane: option(
    choice(['ebpf', 'netlink'], 'ebpf'),
    'Data path: eBPF programs and maps, or kernel routes and next-hop groups alone.',
  ),
  healthPort: option(port(9998), 'TCP port of /healthz, /readyz and /metrics; 0 takes a free one.'),
  healthAddress,
  stateDir: option(
    text(STATE_FOLDER),
    'Directory of what survives a reboot: the last good plan and recorded settings.',
  ),
  keyDir: option(text(KEY_FOLDER), 'Directory of the WireGuard key pair.'),
  keyMaxAgeHours: option(
    whole({ min: 0, max: 100_000 }, 0),
    'Maximum age of the WireGuard key: it is rotated in the last quarter of it, every node at a time of its own; 0: no rotation by age.',
  ),
  bpffsDir: option(text(PIN_FOLDER), 'Directory in a bpffs for pinned programs, links and maps.'),
  unitsDir: option(text(KEEPER_UNITS), 'Directory of the units that node-keeper runs.'),
  relayNamespace: option(
    text(process.env['POD_NAMESPACE'] ?? DEFAULT_NAMESPACE),
    'Namespace of the Services of the managed relay and of the status aggregator; POD_NAMESPACE when not given.',
  ),
  statusService: option(
    text(''),
    'Service of the status aggregator, in the same namespace; empty: the node reports to none.',
  ),
  statusTokenFile: option(
    text('/var/run/secrets/unbounded/status/token'),
    'Token by which the status aggregator knows the node; read for each report.',
  ),
  cniConfDir: option(text(CNI_CONF_FOLDER), 'Directory of CNI configurations.'),
  cniBinDir: option(text('/opt/cni/bin'), 'Directory of CNI plugins, into which ours is copied.'),
  cniReservationsDir: option(
    text('/var/lib/cni/networks/unbounded'),
    'Directory in which the CNI plugin host-local keeps the addresses of our pods.',
  ),
  cniPlugin: option(text(beside('apps/cni/build/unbounded-cni')), 'CNI plugin of this project.'),
  cniSocket: option(text(CNI_SOCKET), 'Socket on which the CNI plugin connects to the agent.'),
  hostFirewall: option(
    choice(['Accept', 'Report'], 'Accept'),
    'What belongs to the overlay and a firewall of the host would drop: Accept lets it pass, Report only reports it.',
  ),
  egress: option(
    choice(['On', 'Off'], 'Off'),
    'Egress addresses: On, and no pod starts before it is known whether it has one; Off, and what is left of them is taken away.',
  ),
  l2: option(
    choice(['On', 'Off'], 'Off'),
    'Networks, which are LANs across nodes: On, and the node takes part in those of its pods; Off, and what is left of them is taken away.',
  ),
  tailnet: option(
    flag(false),
    'Pods as devices of a tailnet: the tailnet agent of the node is asked for those that join. Without it no pod is one.',
  ),
  // Not by its name in libs/tailnet-cni: with that comes gRPC, which an agent without the section does without.
  tailnetSocket: option(
    text('/var/run/tailscale-cni/daemon.sock'),
    'Socket on which the tailnet agent of the node listens.',
  ),
  dbusSocket: option(text('/run/dbus/system_bus_socket'), 'Socket of the D-Bus system bus, on which firewalld is.'),
  hostEtcDir: option(
    path,
    'The host’s /etc, for files by which systemd-networkd and NetworkManager leave the overlay alone; not set: none are written.',
  ),
  bpfObject: option(text(beside('bpf/build/unbounded_encap.bpf.o')), 'The compiled eBPF programs.'),
  l2BpfObject: option(text(beside('bpf/build/unbounded_l2.bpf.o')), 'The compiled eBPF programs of Networks.'),
  podsBpfObject: option(
    text(beside('bpf/build/unbounded_pods.bpf.o')),
    'The compiled eBPF program at the pods’ bridge.',
  ),
  logLevel: option(choice(['trace', 'debug', 'info', 'warn', 'error'], 'info'), 'Lowest level that is logged.'),
} as const;

/** What a node is called matters to none of what is taken away. */
export const cleanupOptions = { ...agentOptions, nodeName: option(text(''), 'Not needed.') };

export type AgentConfig = ConfigOf<typeof agentOptions>;
