import { PEER_STATES } from '@unbounded/health';
import { z } from 'zod';
import { byName, count, eachOf, milliseconds, name, totalOf, word } from './bounds.ts';

/** What connectivity at a node observes: of its peers, of the ways to other sites, and of what it drops. */

const MOST_PEERS = 10_000;
const MOST_GROUPS = 2_000;
const MOST_MEMBERS = 256;
const MOST_DEVICES = 1_024;
/** Of all groups together: of 2,000 with 16 members each, the most that a plan has, it is half. */
const MOST_MEMBERS_TOGETHER = 65_536;
/** Of all peers together: one or two interfaces each. */
const MOST_SESSIONS_TOGETHER = 32_768;
/** A plan has two for each address family: pods and nodes, and locators. */
const MOST_GROUPS_OF_SITE = 16;

/** Of the probes of one address family. */
const peerHealth = z.object({
  state: word(PEER_STATES),
  /** The last round trip. Absent: none yet. */
  rttMs: milliseconds.optional(),
  /** Of the last probes, how many were not answered in time: 0 to 1. */
  lossRatio: z.number().min(0).max(1).optional(),
  /** Where the path carries less than its device. */
  pathMtuBytes: count.optional(),
  /** Of a gateway: whether echoes through it return. */
  forwards: z.boolean().optional(),
});

/** A WireGuard session, on one interface of ours. */
const wireGuardPeer = z.object({
  endpoint: z.string().max(64).optional(),
  /** By the node's clock, RFC 3339. Absent: there was no handshake. */
  latestHandshakeTime: z.string().max(40).optional(),
  rxBytes: count,
  txBytes: count,
  /** Where there is a relay: which way packets go. */
  path: word(['Direct', 'Relayed']).optional(),
  /** Why they go that way, in words. */
  pathReason: z.string().max(256).optional(),
  /**
   * When they began to go that way, by the node's clock, RFC 3339; changes with `path` alone. Of a path that an earlier process of the
   * agent left as it is: when this process found it.
   */
  pathSinceTime: z.string().max(40).optional(),
});

const peer = z.object({
  protocol: word(['WireGuard', 'GENEVE', 'VXLAN', 'IPIP', 'None']),
  health: z.object({ ipv4: peerHealth.optional(), ipv6: peerHealth.optional() }),
  /** By interface. */
  wireGuard: byName(wireGuardPeer, MOST_DEVICES),
});

/** The gateways behind which a site, or the routed blocks of some pools, are reached. */
const group = z.object({
  site: name.optional(),
  family: word(['IPv4', 'IPv6']),
  /** By node. isActive: packets go there now. reachesSite: what the gateway itself says; absent: nothing. */
  members: byName(z.object({ tier: count, isActive: z.boolean(), reachesSite: z.boolean().optional() }), MOST_MEMBERS),
});

export const connectivityStatus = z.object({
  site: name,
  role: word(['worker', 'gateway']),
  dataplane: word(['ebpf', 'netlink']),
  /** By node. */
  peers: byName(peer, MOST_PEERS, totalOf('wireGuard', MOST_SESSIONS_TOGETHER)),
  /** By name. */
  groups: byName(group, MOST_GROUPS, totalOf('members', MOST_MEMBERS_TOGETHER), eachOf('site', MOST_GROUPS_OF_SITE)),
});

export type ConnectivityStatus = z.infer<typeof connectivityStatus>;
export type PeerStatus = z.infer<typeof peer>;
export type PeerHealthStatus = z.infer<typeof peerHealth>;
export type GroupStatus = z.infer<typeof group>;
export type WireGuardPeerStatus = z.infer<typeof wireGuardPeer>;
