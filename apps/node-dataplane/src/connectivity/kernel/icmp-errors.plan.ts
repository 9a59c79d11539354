import { baseOf, CONNECTIVITY_CHAINS } from '../../kernel/base-chains.ts';
import { PORTS } from '@unbounded/config/ownership';
import type { ChainSpec, RuleSpec, SetSpec } from '@unbounded/nftables';
import { parseEndpoint } from '@unbounded/wireguard';
import type { KernelHop, KernelPlan } from '../../data-path/kernel-plan.ts';
import { addressSets, setName } from '../../kernel/address-sets.ts';
import type { FirewallPart } from './firewall-parts.ts';
import type { Family } from '../../kernel/nft-family.ts';
import { ICMP, ICMPV6 } from '../../kernel/protocol-numbers.ts';
import { QUOTED_IP, quotedIpChains } from './quoted-ip.plan.ts';
import { QUOTED_IP6, quotedIp6Chains } from './quoted-ip6.plan.ts';
import { dropError, errorField, hasType, SETS } from './quoted-packet.ts';

/**
 * No ICMP error teaches the node anything about its tunnels. The kernel believes one from whomever, if a socket or a device has
 * what the quoted packet names, and keeps the path MTU for ten minutes: for all packets to that far end, which tunnel packets
 * with DF do not survive. Errors for pods are forwarded and do not come here.
 *
 * Of errors about a far end these are believed: about TCP, and about connections of the node that are no tunnels.
 *
 * Fragments: as in injection.plan.ts, errors are whole here.
 */

const TYPES = {
  /** RFC 792: unreachable, source quench, redirect, time exceeded, parameter problem. */
  ip: [3, 4, 5, 11, 12],
  /** RFC 4443: unreachable, packet too big, time exceeded, parameter problem. */
  ip6: [1, 2, 3, 4],
} as const;

/** RFC 4861: names the destination itself; its quoted packet is an option. */
const redirectIp6: RuleSpec = dropError('redirect of a far end', hasType(137), {
  match: 'set',
  field: errorField(24, 16),
  op: '==',
  set: setName(SETS.farEnds, 'ip6'),
});

const errorsOf = (family: Family, quoted: string, ...more: readonly RuleSpec[]): ChainSpec => ({
  name: `icmp_errors_${family}`,
  rules: [
    {
      comment: 'what the kernel tells itself',
      expressions: [{ match: 'meta', key: 'iifname', op: '==', value: 'lo' }, { do: 'return' }],
    },
    ...TYPES[family].map((type): RuleSpec => ({
      comment: `type ${type}`,
      expressions: [hasType(type), { do: 'goto', chain: quoted }],
    })),
    ...more,
  ],
});

const entry = (protocol: number, family: Family): RuleSpec => ({
  comment: `${family}: ICMP`,
  expressions: [
    { match: 'meta', key: 'l4proto', op: '==', value: protocol },
    { do: 'goto', chain: `icmp_errors_${family}` },
  ],
});

const hopsOf = (plan: KernelPlan): KernelHop[] => [
  ...plan.groups.flatMap(({ members }) => members),
  ...plan.endpoints.flatMap(({ via }) => ('nextHop' in via ? [via.nextHop] : [])),
];

/** Nodes' addresses as a whole, and what the node's own tunnels have besides. */
const farEndsOf = (plan: KernelPlan): string[] => [
  ...plan.tunnelEnds.addresses,
  ...plan.externalTunnelPeers,
  ...plan.forwarders,
  ...[...plan.tunnels, ...hopsOf(plan), ...(plan.senders ?? [])].flatMap(({ remoteIp }) => remoteIp ?? []),
  ...plan.wireGuard.flatMap(({ peers }) =>
    peers.flatMap(({ endpoint }) => (endpoint ? [parseEndpoint(endpoint).address] : [])),
  ),
];

const setsOf = (plan: KernelPlan): SetSpec[] => {
  const own = plan.wireGuard.map(({ listenPort }) => listenPort);
  const ports = [PORTS.vxlan, PORTS.geneve, ...plan.tunnelEnds.wireGuardPorts, ...own];
  return [
    { name: SETS.ownWireGuardPorts, type: 'port', elements: own.map(String) },
    { name: SETS.tunnelPorts, type: 'port', elements: [...new Set(ports)].map(String) },
    ...addressSets(SETS.farEnds, [...new Set(farEndsOf(plan))]),
  ];
};

export const planIcmpErrors = (plan: KernelPlan): FirewallPart => ({
  sets: setsOf(plan),
  chains: [
    {
      name: CONNECTIVITY_CHAINS.icmpErrors.name,
      base: baseOf(CONNECTIVITY_CHAINS.icmpErrors),
      rules: [entry(ICMP, 'ip'), entry(ICMPV6, 'ip6')],
    },
    errorsOf('ip', QUOTED_IP),
    errorsOf('ip6', QUOTED_IP6, redirectIp6),
    ...quotedIpChains,
    ...quotedIp6Chains,
  ],
});
