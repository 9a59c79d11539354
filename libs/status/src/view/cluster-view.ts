import { z } from 'zod';
import { listOf, recordOf } from '../report/entries.ts';

/** What an operator sees of the whole cluster. Everything is by name, so that an update has what changed alone. */

const text = z.string();
const whole = z.number().int();
/** Wall-clock time of the aggregator, RFC 3339. */
const time = z.string();

const LONGEST_WORD = 64;
/**
 * One of these words. Another one is of a later version, whose view is relayed as it is by replicas of this one: the type has what this
 * version writes.
 */
const oneOf = <const T extends readonly string[]>(words: T) =>
  z
    .string()
    .max(LONGEST_WORD)
    .meta({ enum: [...words] }) as unknown as z.ZodType<T[number], T[number]>;

export const SEVERITIES = ['critical', 'warning', 'info'] as const;

const problem = z.object({
  severity: oneOf(SEVERITIES),
  /** A CamelCase word, as in Kubernetes conditions. */
  reason: text,
  kind: oneOf(['Site', 'GatewayPool', 'Node', 'EgressAddress']),
  name: text,
  /** What was observed. */
  message: text,
  /** What that means for traffic, and what stands in. */
  consequence: text,
  /** Sites whose traffic is affected. */
  sites: listOf(text),
  /** Of an EgressAddress: the nodes that report that they answer for it. It is a problem of none of them, as far as is known here. */
  claimants: listOf(text).optional(),
  since: time,
});
export type Problem = z.infer<typeof problem>;

/**
 * Healthy: it reports, its peers answer and nothing is wrong. Degraded: something is. Unreachable: it does not report, and its peers get no
 * answer. Unknown: it does not report, and nobody can say.
 */
const NODE_STATES = ['Healthy', 'Degraded', 'Unreachable', 'Unknown'] as const;
export type NodeState = (typeof NODE_STATES)[number];

const node = z.object({
  /** Absent: in no Site. */
  site: text.optional(),
  /** Pools whose gateway it is. */
  pools: listOf(text),
  state: oneOf(NODE_STATES),
  /** report: by the node itself, lately. api: by the conditions of its Node object. none: by nothing. */
  source: oneOf(['report', 'api', 'none']),
  /** Condition Ready of the Node. */
  ready: oneOf(['True', 'False', 'Unknown']),
  /** The last report's receipt, where that is too old to count. */
  lastReportTime: time.optional(),
  agentVersion: text.optional(),
  /** Peers that it probes, and those of them that answer; without a report that counts there are none. */
  peers: z.object({ total: whole, healthy: whole, relayed: whole }).optional(),
  problems: whole,
});
export type NodeView = z.infer<typeof node>;

const site = z.object({
  state: oneOf(NODE_STATES),
  nodes: whole,
  reporting: whole,
  gateways: whole,
  problems: whole,
});
export type SiteView = z.infer<typeof site>;

const pool = z.object({
  state: oneOf(NODE_STATES),
  /** By node: whether it carries traffic, and for how many sites. */
  gateways: recordOf(z.object({ state: oneOf(NODE_STATES), activeFor: listOf(text) })),
  connectedSites: listOf(text),
});
export type PoolView = z.infer<typeof pool>;

const REACH_STATES = ['Reachable', 'Partial', 'Unreachable', 'Unknown'] as const;

/** From the nodes of one site to another one, by the probes of the nodes themselves. */
const reach = z.object({
  state: oneOf(REACH_STATES),
  /** Since when the state is this one, and the way is direct, or goes over the relay in part, or as a whole. Absent: an earlier version composed it. */
  since: time.optional(),
  /** Of the nodes that report: how many know of the other site, and how many have a way there that answers. */
  nodes: whole,
  reaching: whole,
  /** Gateways that packets go to now. */
  via: listOf(text),
  /** How many of those nodes have a way that goes over the relay, from them or from the gateway that they use. */
  relayed: whole,
  /** Why one of them does. */
  relayedReason: text.optional(),
  /** Round trip to the gateway in use and from there to the next one, medians of the nodes, two digits. */
  rttMs: z.number().optional(),
  /** The least of the ways in use, where one is narrower than its device. */
  pathMtuBytes: whole.optional(),
  /** Of the last probes of the ways in use, the share that was not answered, on both hops; the worst of the nodes. */
  lossRatio: z.number().optional(),
});
export type ReachView = z.infer<typeof reach>;

const address = z.object({
  /** Nodes that answer for the address: more than one is a fault. */
  owners: listOf(text),
});

export const clusterView = z.object({
  summary: z.object({
    state: oneOf(NODE_STATES),
    sites: whole,
    nodes: whole,
    reporting: whole,
    gateways: whole,
    problems: z.object({ critical: whole, warning: whole, info: whole }),
  }),
  sites: recordOf(site),
  pools: recordOf(pool),
  nodes: recordOf(node),
  /** By source site, then by destination site. */
  reach: recordOf(recordOf(reach)),
  egress: recordOf(address),
  /** By id; in order of urgency in `order`. */
  problems: recordOf(problem),
  order: listOf(text),
  /** What is not from reports is as it was then: the API server cannot be read since. Absent: it is as it is. */
  objectsTime: time.optional(),
  /** Problems that ended lately, the last one first. */
  ended: listOf(problem.extend({ until: time })),
});
export type ClusterView = z.infer<typeof clusterView>;
