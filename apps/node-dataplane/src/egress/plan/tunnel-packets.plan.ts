import { PORTS } from '@unbounded/config/ownership';
import type { ChainSpec, Expression, RawField, RuleSpec, SetSpec } from '@unbounded/nftables';
import { isIn, ofFamily, setName } from '../../kernel/address-sets.ts';
import { baseOf, EGRESS_CHAINS } from '../../kernel/base-chains.ts';
import { ADDRESS_TYPE, FAMILIES, type Family, familyOf } from '../../kernel/nft-family.ts';
import { UDP } from '../../kernel/protocol-numbers.ts';
import type { EgressPlan } from './egress-plan.ts';
import { decide, drop, isSolicitation, neighborDiscovery, openedTo, rule, SETS, SOLICITED } from './names.ts';

/**
 * What the tunnel's device takes, while both headers are there: from the node of a pod that pod's packets, if it leaves here; from an owner
 * answers to pods that leave there. The outer source is a node's address in the overlay, which connectivity lets come from that node alone.
 */

const CHECK = 'tunnel_packets';
const CARRIED = 'carried';
const ANSWERED = 'answered';

/** Bytes from the UDP header: it, that of VXLAN (RFC 7348), Ethernet, IP. */
const FRAME_AT = 8 + 8;
const ETHERTYPE_AT = FRAME_AT + 12;
const PACKET_AT = FRAME_AT + 14;
const INNER: Readonly<
  Record<Family, { readonly etherType: number; readonly source: RawField; readonly destination: RawField }>
> = {
  ip: {
    etherType: 0x0800,
    source: { base: 'transport', offsetBytes: PACKET_AT + 12, lengthBytes: 4 },
    destination: { base: 'transport', offsetBytes: PACKET_AT + 16, lengthBytes: 4 },
  },
  ip6: {
    etherType: 0x86dd,
    source: { base: 'transport', offsetBytes: PACKET_AT + 8, lengthBytes: 16 },
    destination: { base: 'transport', offsetBytes: PACKET_AT + 24, lengthBytes: 16 },
  },
};

/** Of the outer packets: IPv4 if the node has it in the overlay. */
export const outerFamily = ({ overlayAddresses }: Pick<EgressPlan, 'overlayAddresses'>): Family =>
  overlayAddresses.some((address) => familyOf(address) === 'ip') ? 'ip' : 'ip6';

export const outerAddress = (addresses: readonly string[], family: Family): string | undefined =>
  ofFamily(family, addresses)[0];

/** Nodes by the addresses of pods: those that a node brings, and those that an owner answers to. */
const pairsOf = (
  plan: EgressPlan,
): Record<typeof CARRIED | typeof ANSWERED, readonly (readonly [string, string])[]> => ({
  [CARRIED]: plan.translated.flatMap(({ pods }) =>
    pods.flatMap(({ node, addresses }) => addresses.map((address) => [node, address] as const)),
  ),
  [ANSWERED]: plan.steered.flatMap(({ routes, pods }) => {
    const owners = routes
      .flatMap(({ egress }) => egress.map(({ owner }) => owner))
      .filter((owner) => owner !== plan.node);
    return pods.flatMap(({ addresses }) =>
      addresses.flatMap((address) => owners.map((owner) => [owner, address] as const)),
    );
  }),
});

export const tunnelPacketSets = (plan: EgressPlan): SetSpec[] => {
  const outer = outerFamily(plan);
  const outerOf = new Map(
    plan.peers.map(({ node, overlayAddresses }) => [node, outerAddress(overlayAddresses, outer)]),
  );
  return Object.entries(pairsOf(plan)).flatMap(([name, pairs]) =>
    FAMILIES.map((inner): SetSpec => {
      const elements = pairs.flatMap(([node, address]) => {
        const from = outerOf.get(node);
        return from === undefined || familyOf(address) !== inner ? [] : [`${from} . ${address}`];
      });
      return {
        name: setName(name, inner),
        type: `${ADDRESS_TYPE[outer]} . ${ADDRESS_TYPE[inner]}`,
        single: true,
        elements: [...new Set(elements)],
      };
    }),
  );
};

const accepted = (plan: EgressPlan, name: string, inner: Family, end: 'source' | 'destination'): RuleSpec => {
  const outer = outerFamily(plan);
  const { etherType, [end]: field } = INNER[inner];
  return rule(
    `${inner}, ${name}`,
    {
      match: 'raw',
      field: { base: 'transport', offsetBytes: ETHERTYPE_AT, lengthBytes: 2 },
      op: '==',
      value: etherType,
    },
    { match: 'pair', fields: [`${outer}.saddr`, field], op: '==', set: setName(name, inner) },
    { do: 'return' },
  );
};

const notByOverlay: Expression = { match: 'device', key: 'iifname', op: '!=', set: SETS.overlay };

export const planTunnelPackets = (plan: EgressPlan): ChainSpec[] => {
  const outer = outerFamily(plan);
  const own = outerAddress(plan.overlayAddresses, outer);
  return [
    {
      name: EGRESS_CHAINS.arriving.name,
      base: baseOf(EGRESS_CHAINS.arriving),
      rules: [
        rule(
          'of the tunnel',
          { match: 'meta', key: 'l4proto', op: '==', value: UDP },
          { match: 'payload', field: 'th.dport', op: '==', value: PORTS.egress },
          { do: 'goto', chain: CHECK },
        ),
        rule(
          'whether the node has an egress address',
          isSolicitation,
          { match: 'set', field: SOLICITED, op: '==', set: setName(SETS.owned, 'ip6') },
          ...decide('translate'), // answered or not by the fence, behind this chain
        ),
        ...neighborDiscovery,
        ...FAMILIES.map((family) =>
          rule(`${family}: to an egress address`, isIn(family, 'daddr', SETS.owned), ...drop('unsolicited')),
        ),
        ...FAMILIES.map((family) =>
          rule(`${family}: to the node by an egress address`, openedTo(family, SETS.owned), ...drop('unsolicited')),
        ),
      ],
    },
    {
      name: CHECK,
      rules: [
        rule(
          'natively, but not by the way back',
          notByOverlay,
          { match: 'route-back', found: false },
          ...drop('forged'),
        ),
        ...(own === undefined
          ? []
          : [
              rule(
                'to another address',
                { match: 'payload', field: `${outer}.daddr`, op: '!=', value: own },
                ...drop('forged'),
              ),
              ...FAMILIES.flatMap((inner) => [
                accepted(plan, CARRIED, inner, 'source'),
                accepted(plan, ANSWERED, inner, 'destination'),
              ]),
            ]),
        rule('of nobody who may', ...drop('forged')),
      ],
    },
  ];
};
