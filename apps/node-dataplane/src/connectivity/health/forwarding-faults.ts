import type { ForwardingReason } from '@unbounded/crds';
import type { TracedDrop } from '@unbounded/nftables';
import type { Problem } from '@unbounded/topology';
import { DEVICES } from '../../data-path/devices.ts';
import type { Family, PeerReport } from './messages.ts';
import { isAnswering, namesOf } from './problems.ts';

/** What echoes say of this node's own forwarding. */

export interface ForwardingFault {
  /** No echo of the node comes back through any gateway, though these answer probes. */
  readonly families: readonly Family[];
  readonly lost: readonly PeerReport[];
  /** Peers that answer, and say that none of their echoes through this node comes back, or none at all. */
  readonly deaf: readonly PeerReport[];
  /** It may be the fault of the only one that says so: there is something to tell only if an echo is seen to be dropped here. */
  readonly isDoubtful: boolean;
}

/** undefined: nothing is known to be wrong. */
export const forwardingFault = (peers: readonly PeerReport[]): ForwardingFault | undefined => {
  const answering = peers.filter(isAnswering);
  const gateways = answering.filter(({ forwards }) => forwards !== undefined);
  const families = ([4, 6] as const).filter((family) => {
    const ofFamily = gateways.filter((peer) => peer.family === family);
    return ofFamily.length > 0 && ofFamily.every(({ forwards }) => !forwards);
  });
  const deaf = answering.filter(({ missesEchoes }) => missesEchoes !== undefined);
  if (families.length === 0 && deaf.length === 0) return undefined;
  const isSure = new Set(deaf.map(({ node }) => node)).size > 1; // one alone may say what it likes
  return {
    isDoubtful: families.length === 0 && !isSure,
    families,
    lost: gateways.filter(({ family }) => families.includes(family)),
    deaf,
  };
};

/** The chain that was seen to drop an echo. */
export type Blocker = TracedDrop & { readonly comment?: string };

export interface TraceResult {
  readonly blocker: Blocker | undefined;
  /** Echoes were traced through the node's nftables. */
  readonly isTraced: boolean;
  /** Of tunnels. */
  readonly devices: readonly string[];
}

const effectOf = ({ families, lost, deaf }: ForwardingFault): string => {
  const parts = [
    ...(deaf.length > 0 ? [`echoes of ${namesOf(deaf)} do not come back through this node`] : []),
    ...(families.length > 0 ? [`none of its own comes back through ${namesOf(lost)}`] : []),
  ];
  return parts.join('; ');
};

const ruleText = ({ family, table, chain, handle, comment }: Blocker): string => {
  const place = `chain ${chain} of nftables table ${family} ${table}`;
  if (handle === undefined) return `the policy of ${place}`;
  return `rule ${handle}${comment === undefined ? '' : ` ("${comment}")`} in ${place}`;
};

/** Tables that iptables writes and reads, which takes no rules of others in them. */
const IPTABLES: ReadonlySet<string> = new Set(['filter', 'mangle', 'nat', 'raw', 'security']);
/** Tables of programs that write them anew, and may keep others out. */
const MANAGED: ReadonlySet<string> = new Set(['firewalld']);

const remedyFor = (blocker: Blocker, devices: readonly string[]): string => {
  const { family, table, chain } = blocker;
  if ((family === 'ip' || family === 'ip6') && IPTABLES.has(table))
    return `let them pass in ${family === 'ip' ? 'iptables' : 'ip6tables'}, or set node-dataplane.hostFirewall=Accept, which does`;
  if (MANAGED.has(table)) return `let them pass in ${table}`;
  return `to let them pass, where chain ${chain} sees what is forwarded: ${commandFor(blocker, devices)}`;
};

/** Lets pass what belongs to the overlay: what of it may, our own table decides. */
const commandFor = ({ family, table, chain }: Blocker, devices: readonly string[]): string => {
  const from = [DEVICES.bridge, DEVICES.echo, ...devices];
  const to = [DEVICES.bridge, DEVICES.echo, DEVICES.anchor, ...devices];
  const set = (names: readonly string[]): string => `{ ${names.map((name) => `"${name}"`).join(', ')} }`;
  return `nft 'insert rule ${family} ${table} ${chain} iifname ${set(from)} oifname ${set(to)} accept'`;
};

/** Its reason stands in the condition of the Node, which gateway-health reads. */
export interface ForwardingProblem extends Problem {
  readonly reason: ForwardingReason;
}

/** In words, with what an operator can do. */
export const faultProblems = (
  fault: ForwardingFault,
  { blocker, isTraced, devices }: TraceResult,
): ForwardingProblem[] => {
  const effect = effectOf(fault);
  if (blocker) {
    const message = `${ruleText(blocker)} drops packets of the overlay: ${effect}; ${remedyFor(blocker, devices)}`;
    return [{ reason: 'HostFirewallBlocks', message }];
  }
  if (fault.isDoubtful) return [];
  const where = isTraced
    ? 'no nftables table here drops them: is forwarding on (net.ipv4.ip_forward, net.ipv6.conf.all.forwarding), does iptables-legacy drop them, or does the other end'
    : 'who drops them is being looked for';
  return [{ reason: 'NotForwarding', message: `${effect}: ${where}` }];
};
