import { LONGEST_CIDR, noHostBits, objectName } from './fields.ts';
import { L2_LOCATOR_PREFIX_BITS } from './names.ts';
import { type CelRule, oneOf, optional, type OptionalSchema, type Schema, string } from './schema.ts';

/** Fields that several kinds of stretched L2 share. */

const MAC_TEXT_LENGTH = 17;

/** Of one station: the lowest bit of the first octet says "group" (IEEE 802), and all zero is nobody's. */
const macRules: readonly CelRule[] = [
  {
    rule: `self.matches('^[0-9a-f]{2}(:[0-9a-f]{2}){5}$')`,
    message: 'must be a MAC address in lower case like 02:00:5e:10:00:01',
    messageExpression: `'"' + self + '" is no MAC address in lower case like 02:00:5e:10:00:01'`,
  },
  {
    rule: `self.matches('^[0-9a-f][02468ace]:') && self != '00:00:00:00:00:00'`,
    message: 'must be the MAC address of one station: its second digit is even, and it is not all zero',
    messageExpression: `'"' + self + '" is the address of a group or of nobody: the second digit of a station is even, as in 02:00:5e:10:00:01'`,
  },
];

/** Six octets in lower case with colons, of one station (IEEE 802: not a group address). */
export const macAddress = (description: string): Schema<string> =>
  string({ description, minLength: MAC_TEXT_LENGTH, maxLength: MAC_TEXT_LENGTH, rules: macRules });

export const networkName = objectName('The Network.');

/** As Kubernetes prints it: one text for each address, since names are made of it. */
export const canonicalAddress = (description: string): Schema<string> =>
  string({
    description,
    maxLength: 45,
    rules: [
      {
        rule: 'isIP(self) && ip.isCanonical(self)',
        message: 'must be an IP address in its canonical form (RFC 5952) like 192.0.2.1 or 2001:db8::1',
        messageExpression: `'"' + self + '" is no IP address in its canonical form (RFC 5952) like 192.0.2.1 or 2001:db8::1'`,
      },
      {
        rule: `!isIP(self) || (ip(self).isGlobalUnicast() && !self.startsWith('0.'))`,
        message: 'must be a unicast address, no loopback, link-local, multicast or unspecified one',
        messageExpression: `'"' + self + '" is a loopback, link-local, multicast or unspecified address: write a unicast address like 192.0.2.1'`,
      },
    ],
  });

export const entrySource = oneOf(['static', 'learned'], {
  description: 'static: of an endpoint whose addresses are known. learned: seen in traffic.',
});

/** The key of an entry determines its name, and does not change. */
export const immutableSpec: CelRule = {
  rule: 'self == oldSelf',
  message: 'is the key of the object and cannot be changed: delete the object and create another one',
};

export const observedText = (description: string): Schema<string> =>
  string({ description, format: 'date-time', maxLength: 64 });

const { shortest, longest } = L2_LOCATOR_PREFIX_BITS;
const PREFIX_RIGHT = `write an IPv6 prefix of /${shortest} to /${longest} like fd53:ab:cd::/48`;

/** Sites' blocks are cut from it. Its first address decides about every special range: all of them are wider than the prefix may be. */
const locatorPrefixRules: readonly CelRule[] = [
  {
    rule: `isCIDR(self) && cidr(self).ip().family() == 6 && cidr(self).prefixLength() >= ${shortest} && cidr(self).prefixLength() <= ${longest}`,
    message: `must be an IPv6 prefix of /${shortest} to /${longest}: ${PREFIX_RIGHT}`,
    messageExpression: `'"' + self + '" is no IPv6 prefix of /${shortest} to /${longest}: ${PREFIX_RIGHT}'`,
  },
  {
    rule: `!isCIDR(self) || ip.isCanonical(self.substring(0, self.indexOf('/')))`,
    message: 'must be in its canonical form (RFC 5952) like fd53:ab:cd::/48',
    messageExpression: `'"' + self + '" is not in its canonical form (RFC 5952): write it in lower case and as short as it can be, like fd53:ab:cd::/48'`,
  },
  noHostBits,
  {
    rule: '!isCIDR(self) || cidr(self).ip().isGlobalUnicast()',
    message: `must hold unicast addresses only, no link-local, multicast or unspecified ones: ${PREFIX_RIGHT}`,
    messageExpression: `'"' + self + '" holds link-local, multicast or unspecified addresses: ${PREFIX_RIGHT}'`,
  },
];

export const locatorPrefix: Schema<string> = string({
  description: `IPv6 prefix of /${shortest} to /${longest}, canonical. Each Site gets a /52 of it and each node a /64 of its Site's block, its locator: the source and the destination of packets that carry Ethernet frames between nodes. No other address of the network may be in it; a unique local prefix (RFC 4193) of its own is recommended. Another prefix gives all nodes other locators.`,
  maxLength: LONGEST_CIDR,
  rules: locatorPrefixRules,
});

/** A block that cidr-allocator or a controller wrote; not checked again. */
export const locatorText = (description: string): OptionalSchema<string> =>
  optional(string({ description, maxLength: LONGEST_CIDR }));
/** In lists of nodes. */
export const l2Locator = locatorText('The IPv6 /64 of the node for stretched L2; absent: none.');
