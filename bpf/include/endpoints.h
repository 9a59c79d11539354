/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Layouts and maps that user space writes and the programs read. libs/bpf-maps holds the same layouts for TypeScript, and the
 * packet tests bind the two: what changes a size, a place or a meaning here gets the next LAYOUT_VERSION there (its shape.ts).
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* flags of a next hop */
#define HOP_SET_KEY 0x01	/* write tunnel metadata: the device is a flow-based tunnel */
#define HOP_HEALTHY 0x02	/* documented bit; health that counts stands with the members of groups */
#define HOP_IPV6_UNDERLAY 0x04	/* remote is an IPv6 address */
#define HOP_GROUP 0x08		/* the group whose number is in the upper 16 bits decides instead */
#define HOP_OWN_SOURCE 0x20	/* the outer source is the address of unbounded_locals, by which the peer knows us */
#define HOP_ECHO 0x40		/* what comes from the echo address of the node goes back to it: see unbounded_echo */
#define HOP_GROUP_SHIFT 16
/*
 * The inner destination MAC does not follow from remote: its four middle bytes are in the upper halves of flags and
 * protocol, the first two in flags. Never together with HOP_GROUP. Programs that do not know the bit derive the MAC.
 */
#define HOP_MAC 0x10

/* lower half of a next hop's protocol: for people and counters; the programs go by device and flags */
#define HOP_PROTOCOL_MASK 0xffff
#define PROTOCOL_GENEVE 1
#define PROTOCOL_VXLAN 2
#define PROTOCOL_IPIP 3
#define PROTOCOL_WIREGUARD 4
#define PROTOCOL_NONE 5

/*
 * With NEXT_LAYOUT the object is a stand-in for the next layout, to try migrations with: records of other sizes, whose fields
 * are in other places (libs/bpf-maps shape-next.ts).
 */
#ifdef NEXT_LAYOUT
#define LEADING_WORDS(count) __u32 leading[count];
#else
#define LEADING_WORDS(count)
#endif

struct lpm_key_v4 {
	__u32 prefixlen;
	__be32 address;
};

struct lpm_key_v6 {
	__u32 prefixlen;
	__be32 address[4];
};

/* 20 bytes */
struct endpoint_v4 {
	LEADING_WORDS(1)
	__u32 remote;	/* underlay IPv4 address in host order */
	__u32 vni;
	__u32 ifindex;
	__u32 flags;
	__u32 protocol;
};

/* 32 bytes; remote[0] in host order on an IPv4 underlay, else 16 bytes as they are on the wire */
struct endpoint_v6 {
	__u32 remote[4];
	__u32 vni;
	__u32 ifindex;
	__u32 flags;
	__u32 protocol;
};

#define GROUP_MEMBERS 16

/* 36 bytes */
struct group_member {
	__u32 remote[4];	/* as in endpoint_v6 */
	__u32 vni;
	__u32 ifindex;
	__u32 flags;		/* a member without HOP_HEALTHY carries nothing */
	__u32 protocol;
	__u32 weight;		/* 1 is usual; 0 carries nothing */
};

/* 584 bytes */
struct nexthop_group {
	LEADING_WORDS(2)
	__u32 count;
	__u32 reserved;
	struct group_member members[GROUP_MEMBERS];
};

/* 12 bytes, one record */
struct encap_config {
	__u8 own_mac[6];	/* source of inner Ethernet headers; all zero: what the anchor wrote stays */
	__u16 reserved;
	__u32 flags;
};
#define CONFIG_ANY_SOURCE 0x01	/* take packets from tunnels whatever their inner source */

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct lpm_key_v4);
	__type(value, struct endpoint_v4);
} unbounded_endpoints_v4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct lpm_key_v6);
	__type(value, struct endpoint_v6);
} unbounded_endpoints_v6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct nexthop_group);
} unbounded_nexthop_groups SEC(".maps");

/* 20 bytes: the underlay address of a tunnel peer */
struct forwarder_key {
	__u32 address[4];	/* as in endpoint_v6 */
	__u32 is_ipv6;
};

/* Peers that bring more than what is sent back to them; the value has bits. */
#define BRINGS_OTHERS 0x01	/* packets of others: gateways of our own pool, which pass on what their workers sent */
#define BRINGS_ECHOES 0x02	/* echoes of this node: gateways */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct forwarder_key);
	__type(value, __u32);
} unbounded_forwarders SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct encap_config);
} unbounded_config SEC(".maps");

/* 20 bytes, one record: the node's own underlay addresses; zero: the kernel chooses */
struct local_addresses {
	__u32 ipv4;		/* in host order */
	__be32 ipv6[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct local_addresses);
} unbounded_locals SEC(".maps");

/*
 * 20 bytes, one record: the node's addresses of echoes, as on the wire; zero: none. An echo is sent to an address of a gateway, by
 * which it finds its hop, and becomes a packet to its own source there.
 */
struct echo_addresses {
	__be32 ipv4;
	__be32 ipv6[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct echo_addresses);
} unbounded_echo SEC(".maps");
