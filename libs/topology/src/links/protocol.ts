import type { TunnelProtocol } from '@unbounded/crds';
import type { Family } from '@unbounded/ip';
import type { LinkScope } from '../world/world.ts';
import type { Problem } from '../world/problem.ts';

/**
 * How one link is carried. Both ends call this with the same inputs (scopes, addresses and what both nodes can do are
 * all in the cluster's objects), so they agree without asking each other.
 */

/** From the strictest to the loosest of those that do not encrypt. */
const UNENCRYPTED: readonly TunnelProtocol[] = ['GENEVE', 'VXLAN', 'IPIP', 'None'];

/** Bytes that each protocol takes from the underlay's MTU over IPv4; WireGuard's figure holds over IPv6 too. */
const OVERHEAD_BYTES: Readonly<Record<TunnelProtocol, number>> = {
  WireGuard: 80,
  GENEVE: 58,
  VXLAN: 58,
  IPIP: 20,
  None: 0,
};

/** An IPv6 header is longer by this than an IPv4 header without options (RFC 8200, RFC 791). */
const IPV6_EXTRA_BYTES = 20;

/** Bytes that a protocol takes from the MTU of an underlay of the family. */
export const overheadBytes = (protocol: TunnelProtocol, family: Family): number => {
  const grows = family === 6 && protocol !== 'WireGuard' && protocol !== 'None';
  return OVERHEAD_BYTES[protocol] + (grows ? IPV6_EXTRA_BYTES : 0);
};

export interface LinkFacts {
  /** Both ends as text, for messages. */
  readonly name: string;
  readonly sameSite: boolean;
  /** The link runs over external addresses. */
  readonly external: boolean;
  /** Family of the addresses over which it runs, and families of the blocks behind its ends. */
  readonly family: Family;
  readonly inner: ReadonlySet<Family>;
  readonly scopes: readonly LinkScope[];
  /** What each end can do; undefined: it has not said, and is taken to do all but GENEVE and IPIP. */
  readonly abilities: readonly [readonly string[] | undefined, readonly string[] | undefined];
}

export interface Resolution {
  readonly protocol: TunnelProtocol;
  readonly problems: readonly Problem[];
}

/** Without a module in the kernel WireGuard runs in user space, and plain routing needs nothing. */
const ALWAYS: readonly string[] = ['WireGuard', 'VXLAN', 'None'];

const bothCan = ({ abilities }: LinkFacts, protocol: TunnelProtocol): boolean =>
  abilities.every((own) => (own ?? ALWAYS).includes(protocol) || protocol === 'WireGuard' || protocol === 'None');

/** The kernel's ipip devices carry IPv4 in IPv4 and nothing else (RFC 2003). */
const isBeyondIpip = ({ family, inner }: LinkFacts): boolean => family === 6 || inner.has(6);

const privateDefault = (link: LinkFacts): TunnelProtocol => (bothCan(link, 'GENEVE') ? 'GENEVE' : 'VXLAN');

/** The explicit values that count besides WireGuard: a Site's only inside it. */
const countingScopes = ({ scopes, sameSite }: LinkFacts): LinkScope[] =>
  scopes.filter(({ kind, protocol }) => protocol !== undefined && (kind !== 'Site' || sameSite));

/** Security wins: any scope that says WireGuard makes the link WireGuard; else the strictest explicit value; else by the addresses. */
export const resolveProtocol = (link: LinkFacts): Resolution => {
  if (link.scopes.some(({ protocol }) => protocol === 'WireGuard')) return { protocol: 'WireGuard', problems: [] };
  const counting = countingScopes(link);
  const explicit = UNENCRYPTED.find((candidate) => counting.some(({ protocol }) => protocol === candidate));
  if (explicit === undefined) return { protocol: link.external ? 'WireGuard' : privateDefault(link), problems: [] };
  const problems: Problem[] = [];
  if (link.external) {
    const who = counting.map(({ kind, name }) => `${kind} ${name}`).join(', ');
    problems.push({
      reason: 'CleartextOverExternal',
      message: `link ${link.name} runs unencrypted (${explicit}) over external addresses, because ${who} says so`,
    });
  }
  if (explicit === 'IPIP' && isBeyondIpip(link)) {
    const message = `link ${link.name} cannot use IPIP, which carries IPv4 over IPv4 alone: VXLAN is used; set tunnelProtocol: VXLAN or GENEVE`;
    return { protocol: 'VXLAN', problems: [...problems, { reason: 'ProtocolUnsupported', message }] };
  }
  if (bothCan(link, explicit)) return { protocol: explicit, problems };
  const message = `link ${link.name} cannot use ${explicit}, which an end does not support: VXLAN is used; load the kernel module or set tunnelProtocol: VXLAN`;
  return { protocol: 'VXLAN', problems: [...problems, { reason: 'ProtocolUnsupported', message }] };
};
