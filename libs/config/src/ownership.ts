import { LAYOUT_VERSION } from '@unbounded/bpf-maps';

/**
 * How everything that we put into a node's kernel and file system is told from what others put there (ADR 0004). A
 * thing without its mark is never changed and never deleted, whatever its name; a foreign thing under one of our names
 * is reported and left alone.
 */

/** `ip link` shows it as alias; on every device that we make. */
export const LINK_ALIAS = 'unbounded';
/** On those of a section of the agent besides connectivity. */
export const sectionAlias = (section: string): string => `${LINK_ALIAS}:${section}`;

/** Names of the devices that carry the overlay; those of WireGuard are `wg` and their port. */
export const DEVICES = {
  anchor: 'unbounded0',
  /** Its ports are the pods. */
  bridge: 'cbr0',
  /** A TUN by which the node's own echoes come in, as packets of pods do, and leave. */
  echo: 'unbounded-echo',
  VXLAN: 'vxlan0',
  GENEVE: 'geneve0',
  IPIP: 'ipip0',
  /** Of the egress section: packets of pods to the owners of their egress addresses, and the answers. */
  egress: 'egress0',
  /** Of the section of stretched L2: frames of its ports enter the node's forwarding here, and those for its ports come out there. */
  l2Entry: 'l2in0',
  l2Exit: 'l2out0',
} as const;

/** Route, rule and nexthop protocol number (`ip route` shows `proto 117`); below 256, in nobody's rt_protos. */
export const ROUTE_PROTOCOL = 117;
/** Sections of the agent besides connectivity each have one of these for their routes and rules; a section that is no more is known by it. */
export const ROUTE_PROTOCOLS = { first: ROUTE_PROTOCOL, last: 124 } as const;

/** Ids of nexthop objects: our own range, far above what others count from 1. */
export const NEXTHOP_IDS = { first: 0x7500_0000, last: 0x7500_ffff } as const;

/** Our part of the packet mark: kube-proxy uses 0x4000 and 0x8000, Calico 0xffff0000 by default, Cilium 0x0f00. */
export const MARK_MASK = 0x0000_00f0;
/** In our part: came out of the overlay, and goes on to a node's own address by that node's tunnel. */
export const TRANSIT_MARK = 0x0000_0010;
/** In our part: came from outside of the overlay with a source that may enter it. It goes before the packet leaves the node. */
export const ENTERED_MARK = 0x0000_0020;
/**
 * In our part, without the bit below: what the egress section has decided about a packet. steer: to the owner of its egress address.
 * pass: as any packet. translate: it leaves here with an egress address. answer: back to the node of its pod. Gone behind postrouting.
 */
export const EGRESS_MARKS = { steer: 0x30, pass: 0x40, translate: 0x50, answer: 0x60 } as const;
export const EGRESS_MARK_MASK = 0x0000_0070;
/**
 * A bit of our part, beside the others: a firewall of the host lets the packet pass. It is there from our chains to the end of the hook's
 * filters alone, and packets that come with it (the VPC plugin of AWS uses it before routing) lose it there.
 */
export const PASSING_MARK = 0x0000_0080;
/** Comment of our rules in chains of others, by which they are known. */
export const FIREWALL_RULE_COMMENT = 'unbounded: belongs to the overlay';

/** The netlink data path's routing table (libs/topology names it too) and the rules that lead there, before the main table's. */
export const ROUTE_TABLE = 252;
export const RULE_PRIORITY = 32765;
/** Of either data path: the routing table for packets with the transit mark, and the rules that lead there, before the ones above. */
export const TRANSIT_ROUTE_TABLE = 251;
export const TRANSIT_RULE_PRIORITY = 32764;

/**
 * Of the egress section. Rules, before all of ours: what gets an egress address that has a router of its own, to that router; packets with
 * the mark steer of each pod to the table of its routes, answers to that of the nodes of pods; and what has no mark, from pods that are
 * selected, to the table of destinations in the cluster, and from the tunnel nowhere.
 */
export const EGRESS_RULE_PRIORITIES = {
  leave: 32755,
  steer: 32756,
  answer: 32757,
  unmarkedPods: 32758,
  unmarkedTunnel: 32759,
} as const;
export const EGRESS_TABLES = { answers: 250, cluster: 249, firstOfPods: 0x7500_0000, lastOfPods: 0x75ff_ffff } as const;
export const EGRESS_ROUTE_PROTOCOL = 118;
/** Of the section of stretched L2. */
export const L2_ROUTE_PROTOCOL = 119;

/** The agent's section without which a node has no network. */
export const CONNECTIVITY = 'connectivity';
/** nftables table of connectivity (family inet). That of each other section is in nftTableOf. */
export const NFT_TABLE = 'unbounded';
/** nftables table (family bridge): what each pod may send. */
export const NFT_GUARD_TABLE = 'unbounded_pods';
const NFT_PREFIX = `${NFT_TABLE}_`;
/** nftables tables of a section of the agent, in any family. */
export const nftTableOf = (section: string): string => (section === CONNECTIVITY ? NFT_TABLE : NFT_PREFIX + section);
/** Whether a table is one of ours, by its name. */
export const isNftTable = (name: string): boolean => name === NFT_TABLE || name.startsWith(NFT_PREFIX);

/** UDP. */
export const PORTS = { vxlan: 4789, geneve: 6081, health: 9997, egress: 9996 } as const;
/** TCP: of metrics and health, unless an option says another. Agent; cidr-allocator, site-membership, gateway-health; relay; static-egress; l2-networks; tailnet-registrar, tailnet; outside of the chart. */
export const METRICS_PORTS = [9998, 9991, 9992, 9993, 9994, 9995, 9990, 9989, 9988, 9999] as const;
/** UDP source ports of VXLAN. */
export const VXLAN_SOURCE_PORTS = { low: 47891, high: 47922 } as const;

/**
 * Pinned programs, links and maps. Each layout of the maps has a folder of its own: an agent fills that of its layout, switches each
 * device to it, and only then removes those of others, newer or older (ADR 0012).
 */
export const PIN_FOLDER = `/sys/fs/bpf/unbounded/v${LAYOUT_VERSION}`;

/** What survives a reboot: last good plans, recorded sysctls, registered pods. */
export const STATE_FOLDER = '/var/lib/unbounded';
/** Last good plan of a section of the agent, with the version of its form. */
export const keptPlanFile = (section: string, folder = STATE_FOLDER): string => `${folder}/plan-${section}.json`;
/** Sockets and units of the keeper. */
export const RUN_FOLDER = '/run/unbounded';
/** Of the agents of a tailnet, which go on while the node's network is cleaned up: their devices are removed after it. */
export const TAILNET_RUN_FOLDER = `${RUN_FOLDER}/tailnet`;
/** The node's key pair, as WireGuard's own tools expect it. */
export const KEY_FOLDER = '/etc/wireguard';
export const PUBLIC_KEY_FILE = `${KEY_FOLDER}/server.pub`;
/** CNI configuration. */
export const CNI_CONF_FOLDER = '/etc/cni/net.d';
export const CNI_CONF_NAME = '10-unbounded.conflist';
/** Socket on which the CNI binary finds the agent. */
export const CNI_SOCKET = `${RUN_FOLDER}/cni.sock`;
/** The Service in our namespace that leads to the relays in the cluster. */
export const RELAY_SERVICE = 'relay';
/** A file for each user-space WireGuard interface that the keeper runs. */
export const KEEPER_UNITS = `${RUN_FOLDER}/keeper/units`;
/** Beside the units: the reasons for which node-keeper rejected units or could not read them, for the agent to report; absent: none. */
export const KEEPER_REJECTED = `${RUN_FOLDER}/keeper/rejected.json`;
/** Beside the units: which processes node-keeper keeps, and how often each was started; for the agent's metrics. */
export const KEEPER_PROCESSES = `${RUN_FOLDER}/keeper/processes.json`;
/** Beside the units: what the relay's proxies of the node are to do, written by the agent. Without it there are none. */
export const RELAY_UNIT = `${RUN_FOLDER}/keeper/relay.json`;
/** What they have come to: ports of the proxies, relays. Written by their process. */
export const RELAY_STATE = `${RUN_FOLDER}/keeper/relay-state.json`;
/** What they have counted since they started, for the agent's metrics: every few seconds while anything changes. */
export const RELAY_TALLIES = `${RUN_FOLDER}/keeper/relay-tallies.json`;
