import type { ChainSpec, Expression, RawField, RuleSpec } from '@unbounded/nftables';
import { accept, drop, type DropReason, field, own, rule } from './guard-expressions.ts';

/**
 * IPv6 of pods, and neighbor discovery (RFC 4861) in it: solicitations and advertisements with the pod's own addresses and MAC alone, never
 * a router's messages. They stand directly behind the IPv6 header and are whole: behind extension headers or in
 * fragments (RFC 6980) they are dropped. Their forms are the few that hosts send, so that every option is looked at.
 */

const [ICMPV6, FRAGMENT] = [58, 44];
const TYPE = {
  listenerQuery: 130,
  listenerReport: 131,
  listenerDone: 132,
  routerSolicitation: 133,
  routerAdvertisement: 134,
  neighborSolicitation: 135,
  neighborAdvertisement: 136,
  redirect: 137,
  listenerReport2: 143,
} as const;
/** Bytes of ICMPv6 with the target, without and with one option of 8 bytes. */
const [WITHOUT_OPTION, WITH_OPTION] = [24, 32];
const target: RawField = { base: 'transport', offsetBytes: 8, lengthBytes: 16 };
/** Type and length (in 8 bytes) of the option: source or target link-layer address, or a nonce (RFC 7527). */
const optionHead: RawField = { base: 'transport', offsetBytes: 24, lengthBytes: 2 };
const OPTION = { sourceMac: 0x0101, targetMac: 0x0201, nonce: 0x0e01 } as const;
/** Behind the IPv6 header, where that is followed by a fragment header: what the fragment is of. */
const fragmentOf: RawField = { base: 'network', offsetBytes: 40, lengthBytes: 1 };
const optionMac: RawField = { base: 'transport', offsetBytes: 26, lengthBytes: 6 };

const icmp = (type: number): Expression => field('icmpv6.type', type);
const option = (value: number): Expression => ({ match: 'raw', field: optionHead, op: '==', value });
const ownTarget = (op: '==' | '!='): Expression => own('ipv6', op, 'ether.saddr', target);

const direct: RuleSpec = rule('behind extension headers', field('ip6.nexthdr', ICMPV6, '!='), drop('nd'));
const noOption: RuleSpec = rule('no option', field('ip6.length', WITHOUT_OPTION), accept);
const macOption = (value: number): RuleSpec =>
  rule('with the own MAC', field('ip6.length', WITH_OPTION), option(value), own('macs', '==', optionMac), accept);
const otherwise = (reason: DropReason): RuleSpec => ({ expressions: [drop(reason)] });

/** Nobody answers on the bridge: not worth a count, since every honest host asks at its start. */
const noRouter: RuleSpec = rule('asks for routers', icmp(TYPE.routerSolicitation), { do: 'drop' });

const listener: RuleSpec[] = [TYPE.listenerReport2, TYPE.listenerReport, TYPE.listenerDone, TYPE.listenerQuery].map(
  (type) => rule('multicast listener', icmp(type), accept),
);

/** Frames whose source address is the pod's own. */
const ownIpv6: ChainSpec = {
  name: 'own_ipv6',
  rules: [
    rule('all but ICMPv6', { match: 'meta', key: 'l4proto', op: '!=', value: ICMPV6 }, accept),
    rule('advertisement', icmp(TYPE.neighborAdvertisement), { do: 'goto', chain: 'nd_advertisement' }),
    rule('solicitation', icmp(TYPE.neighborSolicitation), { do: 'goto', chain: 'nd_solicitation' }),
    rule('router advertisement', icmp(TYPE.routerAdvertisement), drop('router')),
    rule('redirect', icmp(TYPE.redirect), drop('router')),
    noRouter,
    ...listener,
    // No further extension headers: a first fragment could leave it to the next one what they lead to.
    rule('other ICMPv6', field('ip6.nexthdr', ICMPV6), accept),
    rule(
      'in fragments',
      field('ip6.nexthdr', FRAGMENT),
      { match: 'raw', field: fragmentOf, op: '==', value: ICMPV6 },
      accept,
    ),
    rule('hidden', { match: 'meta', key: 'l4proto', op: '==', value: ICMPV6 }, drop('nd')),
    rule('what it carries cannot be told', drop('ipv6')), // headers cut off, or spread over fragments (RFC 7112)
  ],
};

const advertisement: ChainSpec = {
  name: 'nd_advertisement',
  rules: [
    direct,
    rule('of another address', ownTarget('!='), drop('nd')),
    noOption,
    macOption(OPTION.targetMac),
    otherwise('nd'),
  ],
};

const solicitation: ChainSpec = {
  name: 'nd_solicitation',
  rules: [direct, noOption, macOption(OPTION.sourceMac), otherwise('nd')],
};

/** An address that is being tried out (RFC 4862) must be the pod's own. */
const duplicateDetection: ChainSpec = {
  name: 'nd_duplicate',
  rules: [
    direct,
    rule('of another address', ownTarget('!='), drop('nd')),
    noOption,
    rule('with a nonce', field('ip6.length', WITH_OPTION), option(OPTION.nonce), accept),
    otherwise('nd'),
  ],
};

/** Frames whose source address is not the pod's own: with none, a host may try out its addresses and join groups. */
const unspecifiedIpv6: ChainSpec = {
  name: 'unspecified_ipv6',
  rules: [
    rule('of others', field('ip6.saddr', '::', '!='), drop('ipv6')),
    rule('duplicate detection', icmp(TYPE.neighborSolicitation), { do: 'goto', chain: 'nd_duplicate' }),
    ...listener,
    noRouter,
    otherwise('ipv6'),
  ],
};

export const neighborDiscoveryChains: readonly ChainSpec[] = [
  ownIpv6,
  advertisement,
  solicitation,
  duplicateDetection,
  unspecifiedIpv6,
];
