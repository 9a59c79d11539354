/** One nftables table as a value: what `nft list table` shows, restricted to what our rules need. */

export type TableFamily = 'ip' | 'ip6' | 'inet' | 'arp' | 'netdev' | 'bridge';
/** The arp family has input and output alone. */
export type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting' | 'ingress';

export interface TableSpec {
  readonly family: TableFamily;
  readonly name: string;
  readonly sets?: readonly SetSpec[];
  /** Counters with a name, which several rules may share and which are read without listing the rules. They start at zero. */
  readonly counters?: readonly string[];
  readonly chains: readonly ChainSpec[];
}

export type AddressType = 'ipv4' | 'ipv6';
/** An address and a prefix that belong together (a concatenation; kernel 5.6 and later). */
export type PairType = `${AddressType} . ${AddressType}`;

/** What comes in by one interface (its index): with one MAC, or with one MAC and address. No intervals. */
export type InterfaceType = 'iif' | 'iif . ether' | 'iif . ether . ipv4' | 'iif . ether . ipv6';

/** Elements may overlap: they are merged before they are written. */
export interface SetSpec {
  readonly name: string;
  readonly type: AddressType | PairType | InterfaceType | 'port' | 'mark' | 'ifname';
  /**
   * Prefixes or addresses (`10.0.0.0/8`), pairs as nft shows them (`192.0.2.1 . 10.0.0.0/8`: the first is one address),
   * ports, marks or names as text; `12 . 02:00:00:00:00:01 . 192.0.2.1` of interfaces. Intervals for prefixes.
   */
  readonly elements: readonly string[];
  /** Rules add elements, which expire; `elements` is empty then, and what the kernel holds is no drift. */
  readonly dynamic?: { readonly timeoutMs: number; readonly maxElements: number };
  /**
   * Elements come one by one (`changeElements`), each with its time-out; `elements` is empty in a table, and what the kernel holds is no
   * drift. Addresses, no prefixes; no pairs. A table that is replaced loses them.
   */
  readonly timed?: { readonly maxElements: number };
  /**
   * Of addresses or pairs: no prefixes. Elements can come and go one by one (`changeElements`), and a lookup takes as long however many there
   * are.
   */
  readonly single?: true;
}

/** Elements for a set; those of a timed one leave it by themselves after the time-out. */
export interface ElementsSpec extends SetSpec {
  readonly timeoutMs?: number;
}

export interface ChainSpec {
  readonly name: string;
  /** Absent: a chain that is only jumped to. */
  readonly base?: {
    readonly type: 'filter' | 'nat' | 'route';
    readonly hook: Hook;
    /** Lower runs earlier: -300 raw, -150 mangle, -100 dstnat, 0 filter, 100 srcnat. */
    readonly priority: number;
    readonly policy?: 'accept' | 'drop';
    /** Devices, for the netdev family. */
    readonly devices?: readonly string[];
  };
  readonly rules: readonly RuleSpec[];
}

export interface RuleSpec {
  readonly expressions: readonly Expression[];
  /** At most 127 bytes; `nft list` shows it. */
  readonly comment?: string;
}

export type MetaKey = 'mark' | 'iifname' | 'oifname' | 'nfproto' | 'l4proto' | 'iif' | 'oif';
export type PayloadField =
  | 'ip.saddr'
  | 'ip.daddr'
  | 'ip.protocol'
  | 'ip6.saddr'
  | 'ip6.daddr'
  | 'ip6.length'
  | 'ip6.nexthdr'
  | 'tcp.flags'
  | 'th.sport'
  | 'th.dport'
  | 'icmpv6.type'
  /** Of the bridge and netdev families. A frame with a VLAN tag has the tag's type. */
  | 'ether.daddr'
  | 'ether.saddr'
  | 'ether.type'
  /** Of ARP for Ethernet and IPv4 (RFC 826), in the arp, bridge and netdev families; the type of the frame is not looked at. */
  | 'arp.operation'
  | 'arp.sha'
  | 'arp.spa'
  | 'arp.tpa';
/** Bytes of a packet that no name of ours stands for. */
export interface RawField {
  /**
   * Where the offset begins: the Ethernet header (bridge and netdev families), the IP header, or what follows it, also with options or
   * extension headers.
   */
  readonly base: 'link' | 'network' | 'transport';
  readonly offsetBytes: number;
  readonly lengthBytes: number;
}
type Comparison = '==' | '!=';

/** An address, or the one that the packet has: then no chain of translation behind this one gives its connection another. */
export type NatAddress = string | { readonly field: 'ip.saddr' | 'ip6.saddr' };

/** One step of a rule; a match that fails ends the rule. */
export type Expression =
  /** Meta data of the packet equals a value; names may end in `*`. */
  | {
      readonly match: 'meta';
      readonly key: MetaKey;
      readonly op: Comparison;
      readonly value: string | number;
      readonly mask?: number;
    }
  /** A header field equals a value (address, prefix or number) or, masked, a number. Addresses check the family too. */
  | {
      readonly match: 'payload';
      readonly field: PayloadField;
      readonly op: Comparison;
      readonly value: string | number;
      readonly mask?: number;
    }
  /** Bytes equal a number in network order, or do so masked; of at most 6 bytes. A packet that ends before them does not match, nor does `!=`. */
  | {
      readonly match: 'raw';
      readonly field: RawField;
      readonly op: Comparison;
      readonly value: number;
      readonly mask?: number;
    }
  /** Two fields, the first one as long as the first of the set's type, are a pair of the named set. */
  | {
      readonly match: 'pair';
      readonly fields: readonly [PayloadField, PayloadField | RawField];
      readonly op: Comparison;
      readonly set: string;
    }
  /** What comes in by an interface, with these fields in the order of the set's type, is an element of the named set. */
  | {
      readonly match: 'interface';
      readonly fields: readonly (PayloadField | RawField)[];
      readonly op: Comparison;
      readonly set: string;
    }
  /** A header field is in a named set of the table. Bytes without a name must be as many as a key of the set has. */
  | { readonly match: 'set'; readonly field: PayloadField | RawField; readonly op: Comparison; readonly set: string }
  /** The name of the device is in a named set of type `ifname`. */
  | { readonly match: 'device'; readonly key: 'iifname' | 'oifname'; readonly op: Comparison; readonly set: string }
  /** Connection tracking state is one of these. */
  | {
      readonly match: 'ct-state';
      readonly states: readonly ('new' | 'established' | 'related' | 'invalid' | 'untracked')[];
    }
  /** An address of the connection that the packet belongs to, in one direction; a packet without a connection does not match. */
  | {
      readonly match: 'ct-address';
      readonly direction: 'original' | 'reply';
      readonly address: 'saddr' | 'daddr';
      readonly op: Comparison;
      readonly value: string;
    }
  /** The same, in a named set of addresses of one family. */
  | {
      readonly match: 'ct-address-set';
      readonly direction: 'original' | 'reply';
      readonly family: 'ip' | 'ip6';
      readonly address: 'saddr' | 'daddr';
      readonly op: Comparison;
      readonly set: string;
    }
  /** Which way the packet goes, as seen from who opened its connection; a packet without a connection does not match. */
  | { readonly match: 'ct-direction'; readonly op: Comparison; readonly value: 'original' | 'reply' }
  /** Address translation has changed the destination of the connection that the packet belongs to, or its source. */
  | { readonly match: 'ct-translated'; readonly of: 'daddr' | 'saddr' }
  | { readonly match: 'ct-mark'; readonly op: Comparison; readonly value: number; readonly mask?: number }
  /**
   * Type of the source or destination address (`fib daddr type local`); of the device that the packet came in by alone
   * (`fib daddr . iif type local`).
   */
  | {
      readonly match: 'fib-type';
      readonly address: 'saddr' | 'daddr';
      readonly atDevice?: boolean;
      readonly op: Comparison;
      readonly type: 'local' | 'unicast' | 'broadcast' | 'multicast';
    }
  /** Whether the routes lead back to the source by the device that the packet came in by (`fib saddr . iif oif`). */
  | { readonly match: 'route-back'; readonly found: boolean }
  /**
   * The device by which the routes lead back to the source is in a named set of type `ifname` (`fib saddr oifname`). Of several devices for
   * one destination it is one.
   */
  | { readonly match: 'route-device'; readonly set: string }
  /** So many packets in a second match, and `burst` at once after a pause (`limit rate`, by a token bucket); each that matches takes a token. */
  | { readonly match: 'rate-below'; readonly perSecond: number; readonly burst: number }
  /** mark = (mark & ~mask) | value. */
  | { readonly set: 'mark' | 'ct-mark'; readonly value: number; readonly mask?: number }
  /** Copies the packet's mark to the connection or back. */
  | { readonly copy: 'mark-to-ct' | 'ct-to-mark' }
  /** TCP maximum segment size to the MTU of the route (clamp to path MTU). */
  | { readonly set: 'tcp-mss'; readonly to: 'route-mtu' | number }
  /** The destination becomes another, statelessly; checksums follow. Of the address's family. */
  | { readonly set: 'ip.daddr' | 'ip6.daddr'; readonly to: string }
  /** The kernel tells who traces what becomes of the packet (`meta nftrace set 1`). */
  | { readonly set: 'nftrace' }
  /** Without a name: a counter of this rule. */
  | { readonly do: 'counter'; readonly name?: string }
  /** Counts the packet at its interface's element of a dynamic set of interfaces, which comes into being. */
  | { readonly do: 'count-interface'; readonly at: string }
  | { readonly do: 'masquerade'; readonly fullyRandom?: boolean }
  | { readonly do: 'snat'; readonly to: NatAddress }
  | { readonly do: 'dnat'; readonly to: string; readonly port?: number }
  | { readonly do: 'notrack' }
  | { readonly do: 'accept' | 'drop' | 'return' | 'continue' }
  | { readonly do: 'jump' | 'goto'; readonly chain: string };
