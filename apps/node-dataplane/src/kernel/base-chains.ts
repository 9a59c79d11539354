import type { ChainSpec, TableFamily } from '@unbounded/nftables';

/**
 * The registry of our base chains: which table stands where in a hook. Tables of one family that have a chain at the same hook and
 * priority run in the order in which they were written last, which nobody decides: so there are none.
 */

type Base = NonNullable<ChainSpec['base']>;

export interface BaseChain extends Pick<Base, 'type' | 'hook' | 'priority'> {
  readonly family: TableFamily;
  readonly name: string;
}

/** Priorities of the kernel and of kube-proxy: raw -300, connection tracking -200, mangle -150, dstnat -100, filter 0, srcnat 100. */
const BEFORE_CONNTRACK = -290;
const MANGLE = -150;
const BEFORE_KUBE_PROXY = -110;
/** Behind the translation of Services, which may lead to a node. */
const AFTER_SERVICES = -90;
/** Behind what connectivity drops and marks there. */
const AFTER_ARRIVAL = -85;
/** Behind what connectivity drops at forward and input. */
const AFTER_MANGLE = -149;
/** Before what connectivity drops at forward and output. */
const BEFORE_MANGLE = -151;
/** Before kube-proxy, so that nobody else translates the source. */
const BEFORE_MASQUERADING = 95;
const FILTER = 0;
/** Before IPVS (98), which sends some packets on from the input hook. */
const AFTER_FILTERS = 50;
/** kube-proxy's own masquerading comes first. */
const AFTER_KUBE_PROXY = 105;
/** Behind every translation of sources. */
const AFTER_TRANSLATION = 110;
/** Behind connectivity's own there. */
const LAST = 115;
/** Before it, in a table of its own whose elements expire. */
const FENCE = 114;
/** Before br_netfilter (0) shows frames to the IP hooks. */
const FRAMES = -300;

const inet = (
  name: string,
  hook: Base['hook'],
  priority: number,
  type: Base['type'] = 'filter',
): BaseChain & { readonly family: 'inet' } => ({ family: 'inet', name, type, hook, priority });

/** Of connectivity's table. Within one table the chains of a place run in the order in which they are listed. */
export const CONNECTIVITY_CHAINS = {
  /** Not at prerouting, where it would be one more hook for every packet. */
  injectionForward: inet('injection_forward', 'forward', MANGLE),
  injectionInput: inet('injection_input', 'input', MANGLE),
  transit: inet('transit', 'prerouting', AFTER_SERVICES),
  /** Behind connection tracking, and before whoever drops what it calls invalid. */
  oneSided: inet('one_sided', 'prerouting', MANGLE),
  arriving: inet('arriving', 'prerouting', MANGLE),
  boundary: inet('boundary', 'forward', MANGLE),
  leaving: inet('leaving', 'postrouting', AFTER_TRANSLATION),
  transitForward: inet('transit_forward', 'forward', MANGLE),
  tunnelWays: inet('tunnel_ways', 'input', MANGLE),
  tunnels: inet('tunnels', 'input', MANGLE),
  listeners: inet('listeners', 'input', MANGLE),
  neighbors: inet('neighbors', 'input', MANGLE),
  /** Behind connection tracking, which tells errors about connections of the node from others. */
  icmpErrors: inet('icmp_errors', 'input', MANGLE),
  sources: inet('sources', 'prerouting', BEFORE_CONNTRACK),
  postrouting: inet('postrouting', 'postrouting', AFTER_KUBE_PROXY, 'nat'),
  forward: inet('forward', 'forward', MANGLE),
  passingForward: inet('passing_forward', 'forward', MANGLE),
  passingInput: inet('passing_input', 'input', MANGLE),
  passed: inet('passed', 'postrouting', FILTER),
  passedInput: inet('passed_input', 'input', AFTER_FILTERS),
  relayWays: inet('relay_ways', 'output', BEFORE_KUBE_PROXY, 'nat'),
  /** Where kube-proxy translates in nftables, packets to the relay go without connection tracking. */
  relayWaysUntracked: inet('relay_ways', 'output', BEFORE_CONNTRACK),
  relayAnswers: inet('relay_answers', 'prerouting', BEFORE_CONNTRACK),
  arp: { family: 'arp', name: 'arp', type: 'filter', hook: 'input', priority: FILTER },
} as const satisfies Record<string, BaseChain>;

/** Of the tables of the egress section. Those of the families ip and ip6 hold what expires, and are never replaced for that. */
export const EGRESS_CHAINS = {
  decide: inet('decide', 'prerouting', AFTER_ARRIVAL),
  arriving: inet('arriving', 'input', AFTER_MANGLE),
  way: inet('way', 'forward', AFTER_MANGLE),
  errors: inet('errors', 'output', AFTER_MANGLE),
  translate: inet('translate', 'postrouting', BEFORE_MASQUERADING, 'nat'),
  leaving: inet('leaving', 'postrouting', LAST),
  fence: { family: 'ip', name: 'fence', type: 'filter', hook: 'postrouting', priority: FENCE },
  fence6: { family: 'ip6', name: 'fence', type: 'filter', hook: 'postrouting', priority: FENCE },
  /** Behind the chain of the family inet that marks what is asked about egress addresses. */
  solicited: { family: 'ip6', name: 'solicited', type: 'filter', hook: 'input', priority: AFTER_MANGLE + 1 },
  /** Behind connectivity's. */
  asked: { family: 'arp', name: 'asked', type: 'filter', hook: 'input', priority: FILTER + 1 },
} as const satisfies Record<string, BaseChain>;

/** Of the table of stretched L2. */
export const L2_CHAINS = {
  forward: inet('locators', 'forward', BEFORE_MANGLE),
  output: inet('own_packets', 'output', BEFORE_MANGLE),
  input: inet('ports', 'input', BEFORE_MANGLE),
} as const satisfies Record<string, BaseChain>;

/** Of the table of what pods may send. */
export const GUARD_CHAINS = {
  frames: { family: 'bridge', name: 'frames', type: 'filter', hook: 'prerouting', priority: FRAMES },
  bridgeGroup: { family: 'bridge', name: 'bridge_group', type: 'filter', hook: 'input', priority: FRAMES },
} as const satisfies Record<string, BaseChain>;

const PRIORITY_NAMES: ReadonlyMap<number, string> = new Map([
  [FRAMES, 'first'],
  [BEFORE_CONNTRACK, 'before_conntrack'],
  [BEFORE_MANGLE, 'before_mangle'],
  [MANGLE, 'mangle'],
  [BEFORE_KUBE_PROXY, 'before_kube_proxy'],
  [AFTER_SERVICES, 'after_services'],
  [AFTER_ARRIVAL, 'after_arrival'],
  [AFTER_MANGLE, 'after_mangle'],
  [FILTER, 'filter'],
  [AFTER_FILTERS, 'after_filters'],
  [BEFORE_MASQUERADING, 'before_masquerading'],
  [AFTER_KUBE_PROXY, 'after_kube_proxy'],
  [AFTER_TRANSLATION, 'after_translation'],
  [FENCE, 'fence'],
  [LAST, 'last'],
]);

/** For the one base chain of several that stand there: `input_mangle`. */
export const placeNameOf = ({ hook, priority }: Pick<Base, 'hook' | 'priority'>): string =>
  `${hook}_${PRIORITY_NAMES.get(priority) ?? priority}`;

/** What a chain's plan says of its hook. */
export const baseOf = ({ type, hook, priority }: BaseChain): Base => ({ type, hook, priority, policy: 'accept' });

const placeOf = ({ family, hook, priority }: BaseChain): string => `${family} ${hook} ${priority}`;

/** Two tables with a chain at the same place, in words; none: every order is decided. */
export const findCollisions = (chainsByTable: ReadonlyMap<string, readonly BaseChain[]>): string[] => {
  const owners = new Map<string, string>();
  return [...chainsByTable].flatMap(([table, chains]) =>
    [...new Set(chains.map(placeOf))].flatMap((place) => {
      const owner = owners.get(place);
      owners.set(place, owner ?? table);
      return owner === undefined ? [] : [`tables ${owner} and ${table} both have a base chain at ${place}`];
    }),
  );
};
