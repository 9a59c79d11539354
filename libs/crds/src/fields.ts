import {
  boolean,
  type CelRule,
  integer,
  integerOrString,
  list,
  object,
  oneOf,
  optional,
  type Schema,
  string,
} from './schema.ts';

/** Fields that several kinds share. */

/** Longest textual IPv6 prefix: 45 characters of address (INET6_ADDRSTRLEN less its NUL), a slash and 3 digits. */
export const LONGEST_CIDR = 49;
export const LONGEST_ADDRESS = 45;
/** Names of Sites and GatewayPools are label values too (RFC 1123 label). */
const LONGEST_NAME = 63;
/** RFC 1123 2.1: at most 63 characters of it. */
export const DNS_LABEL_PATTERN = '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$';
/** Without the rule that each part between dots is a label: the API server holds that for names of objects. */
export const DNS_SUBDOMAIN_PATTERN = '^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$';
/** Names of Nodes (RFC 1123 subdomain). */
const LONGEST_NODE_NAME = 253;

/** The address alone as a block, and whether it holds the block's first. Kubernetes 1.31 takes comparing with == for unbounded. */
export const noHostBits: CelRule = {
  rule: `!isCIDR(self) || cidr(self.substring(0, self.indexOf('/')) + (cidr(self).ip().family() == 4 ? '/32' : '/128')).containsIP(cidr(self).masked().ip())`,
  message: 'must have no host bits set',
  messageExpression: `'"' + self + '" has host bits set: all bits behind the prefix length must be zero, as in 10.1.0.0/16'`,
};

const cidrRules: readonly CelRule[] = [
  {
    rule: 'isCIDR(self)',
    message: 'must be an address block: write address/length like 192.0.2.0/24 or 2001:db8::/32',
    messageExpression: `'"' + self + '" is not a CIDR: write address/length like 192.0.2.0/24 or 2001:db8::/32'`,
  },
  noHostBits,
];

/**
 * Blocks of nodes, pods and destinations are routed, so they hold unicast addresses only. Minimum lengths: the largest private
 * IPv4 block is a /8; no operator holds more than a /16 of IPv6, and a shorter prefix is a default route in disguise.
 * With them, the block's first address decides about every special range but 169.254.0.0/16.
 */
const routableRules: readonly CelRule[] = [
  {
    rule: '!isCIDR(self) || cidr(self).prefixLength() >= (cidr(self).ip().family() == 4 ? 8 : 16)',
    message: 'must have a prefix length of at least 8 (IPv4) or 16 (IPv6)',
    messageExpression: `'"' + self + '" is too wide: the prefix length must be at least 8 (IPv4) or 16 (IPv6), as in 10.0.0.0/8'`,
  },
  {
    // containsCIDR() of Kubernetes 1.31 and 1.32 is true only of blocks that begin with the same address.
    rule: `!isCIDR(self) || (cidr(self).ip().isGlobalUnicast() && !self.startsWith('0.') && !(cidr(self).ip().family() == 4 && cidr(self).containsIP('169.254.0.0')))`,
    message: 'must hold unicast addresses only, no loopback, link-local, multicast or unspecified ones',
    messageExpression: `'"' + self + '" holds loopback, link-local, multicast or unspecified addresses: write a block of unicast addresses like 10.1.0.0/16'`,
  },
];

/** An address block with no host bits set. */
export const cidr = (description: string, rules: readonly CelRule[] = cidrRules): Schema<string> =>
  string({ description, maxLength: LONGEST_CIDR, rules });

interface CidrListOptions {
  readonly minItems?: number;
  readonly maxItems: number;
}

/** No value twice, nor none. */
export const cidrs = (description: string, options: CidrListOptions) =>
  list(cidr('192.0.2.0/24 or 2001:db8::/32'), { description, as: 'set', ...options });

/** {@link cidrs} to which packets are routed. */
export const routableCidrs = (description: string, options: CidrListOptions) =>
  list(cidr('192.0.2.0/24 or 2001:db8::/32', [...cidrRules, ...routableRules]), {
    description,
    as: 'set',
    ...options,
  });

/** Entries of a node's lists of addresses and blocks: what is more of a Node is not listed. */
export const MAX_NODE_ADDRESSES = 32;

/** Addresses or blocks that our own controllers write; not checked again. */
export const addressTexts = (description: string) =>
  list(string({ maxLength: LONGEST_ADDRESS }), { description, as: 'atomic', maxItems: MAX_NODE_ADDRESSES });
export const cidrTexts = (description: string) =>
  list(string({ maxLength: LONGEST_CIDR }), { description, as: 'atomic', maxItems: MAX_NODE_ADDRESSES });

/** 32 bytes in canonical base64 (RFC 4648 4): 44 characters, of which the last but one has its two low bits clear. */
export const WIREGUARD_KEY_PATTERN = '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$';
export const wireGuardKey = (description: string): Schema<string> =>
  string({ description, maxLength: 44, pattern: WIREGUARD_KEY_PATTERN });

export const objectName = (description: string): Schema<string> =>
  string({ description, minLength: 1, maxLength: LONGEST_NAME });
export const nodeName = (description: string): Schema<string> =>
  string({ description, minLength: 1, maxLength: LONGEST_NODE_NAME });

/** Names of Sites or GatewayPools, each once. */
export const objectNames = (description: string, minItems: number) =>
  list(objectName('name of the object'), { description, as: 'set', minItems, maxItems: 256 });

/** The name becomes a label value, which may have 63 characters where an object name may have 253. */
export const nameFitsLabel: CelRule = {
  rule: `size(self.metadata.name) <= ${LONGEST_NAME}`,
  message: `metadata.name must have at most ${LONGEST_NAME} characters, because it is the value of a label`,
  messageExpression: `'"' + self.metadata.name + '" is too long: metadata.name may have at most ${LONGEST_NAME} characters, because it is the value of a label'`,
};

export const TUNNEL_PROTOCOLS = ['WireGuard', 'IPIP', 'GENEVE', 'VXLAN', 'None'] as const;
/** What a link can be carried by. `None` is plain routing. */
export type TunnelProtocol = (typeof TUNNEL_PROTOCOLS)[number];

/**
 * What agents tell of themselves so that their peers can rely on it while versions are mixed. `node-addresses`: a gateway that
 * takes packets from a node's own addresses out of that node's tunnel. `node-cidrs`: a gateway that routes the nodeCidrs of all other
 * networks into the overlay, so that what a node there sends from its InternalIP is answered. `locators`: a gateway that forwards frames of
 * stretched L2, whatever families its pods have.
 */
export const NODE_FEATURES = ['node-addresses', 'node-cidrs', 'locators'] as const;

/** What a node can do, and so what the other end may choose. */
export const capabilities = () =>
  optional(
    list(string({ maxLength: 32 }), {
      description: 'Tunnel protocols that the node supports, by name; absent: not yet reported.',
      as: 'set',
      maxItems: 16,
    }),
  );

export const features = () =>
  optional(
    list(string({ maxLength: 32 }), {
      description: 'Features of the agent on the node, on which its peers rely; absent: none.',
      as: 'set',
      maxItems: 16,
    }),
  );

/** Of a node whose WireGuard key has been rotated, or is being rotated. */
export const keyRotation = {
  wireGuardKeyGeneration: optional(
    integer({
      description: 'Number of rotations of wireGuardPublicKey; absent: 0. Determines ports and interfaces.',
      minimum: 0,
      maximum: 2_147_483_647,
    }),
  ),
  wireGuardNextPublicKey: optional(
    wireGuardKey('Base64. The key that follows wireGuardPublicKey, while both are in use.'),
  ),
};

/** 10 ms to 4,294,967 ms: a transmit interval travels as microseconds in 32 bits. */
const intervalRules: readonly CelRule[] = [
  {
    rule: [
      `type(self) == int ? self >= 10 && self <= 4294967`,
      `self.matches('^[0-9]{1,10}$') ? int(self) >= 10 && int(self) <= 4294967`,
      `self.matches('^([0-9]{1,8}([.][0-9]{1,6})?(ms|s|m|h))+$') && duration(self) >= duration('10ms') && duration(self) <= duration('4294967ms')`,
    ].join(' : '),
    message: 'must be milliseconds or a duration like "300ms" or "1s", from 10 ms to 4294967 ms',
  },
];

const interval = (description: string) =>
  integerOrString({
    description: `${description} Milliseconds, or a duration like "300ms".`,
    maxLength: 32,
    rules: intervalRules,
  });

const healthCheckSettings = optional(
  object(
    {
      enabled: optional(boolean({ description: 'Probe the links that this object governs.' }), true),
      detectMultiplier: optional(
        integer({
          description:
            'Lost probes after which a link is unhealthy, and answered ones after which it is healthy again.',
          minimum: 1,
          maximum: 255,
        }),
        3,
      ),
      receiveInterval: optional(interval('Shortest time between probes that this end accepts.'), 1000),
      transmitInterval: optional(interval('Time between probes.'), 1000),
    },
    { description: 'How the links that this object governs are probed.' },
  ),
);

/** The settings of a link that Site, GatewayPool and the three joining kinds share. */
export const linkSettings = {
  healthCheckSettings,
  tunnelProtocol: optional(
    oneOf([...TUNNEL_PROTOCOLS, 'Auto'], {
      description:
        'How links that this object governs are carried. Absent or Auto: WireGuard over external addresses, else GENEVE, or VXLAN where the kernel of an end has no GENEVE. Any governing object that says WireGuard makes the link WireGuard (without a kernel module wireguard-go carries it); else the strictest of GENEVE, VXLAN, IPIP, None counts, and VXLAN stands in for what an end cannot do. A Site’s values other than WireGuard count only inside it. None is plain routing.',
    }),
  ),
  tunnelMTU: optional(
    integer({ description: 'Bytes. The smallest value of all governing objects counts.', minimum: 576, maximum: 9000 }),
  ),
};

/** What `kubectl explain` says of `spec` and `status`. */
export const SPEC = { description: 'Desired state.' } as const;
export const STATUS = { description: 'What is: written by our programs, not by people.' } as const;

/** metav1.Condition */
export const conditions = optional(
  list(
    object({
      type: string({ description: 'What the statement is about.', maxLength: 316, minLength: 1 }),
      status: oneOf(['True', 'False', 'Unknown'], {
        description: 'True: met. False: not met. Unknown: not determined yet.',
      }),
      observedGeneration: optional(
        integer({
          description: 'The metadata.generation that the statement is about.',
          minimum: 0,
          maximum: Number.MAX_SAFE_INTEGER,
        }),
      ),
      lastTransitionTime: string({
        description: 'When the status last changed.',
        format: 'date-time',
        maxLength: 64,
      }),
      reason: string({ description: 'One CamelCase word, for programs.', maxLength: 1024, minLength: 1 }),
      message: string({ description: 'A sentence, for people.', maxLength: 32_768 }),
    }),
    { description: 'Latest observations of the state of the object.', as: 'map', keys: ['type'], maxItems: 16 },
  ),
);

/** metav1.Condition: one statement about an object that is True, False or Unknown. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly observedGeneration?: number;
  /** RFC 3339. */
  readonly lastTransitionTime: string;
  /** One CamelCase word, for programs. */
  readonly reason: string;
  /** A sentence, for people. */
  readonly message: string;
}
