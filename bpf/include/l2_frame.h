/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What a frame is, and which frames a stretched network carries at all. */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "l2_maps.h"
#include "l2_reasons.h"

enum l2_kind {
	L2_OTHER,
	L2_REQUEST,	/* ARP request or neighbor solicitation for target */
	L2_ANNOUNCEMENT, /* gratuitous ARP, RARP, unsolicited neighbor advertisement: never swallowed */
	L2_OWN_GROUP,	/* one of the groups without which IPv6 does not work */
};

/* To whom a source MAC is bound: a port of this node, or an endpoint of the node that sent the frame. Source validation goes by it. */
struct l2_binding {
	__u32 ifindex;		/* of the port; 0: of another node */
	__u32 network;
	__u32 flags;		/* L2_PORT_TRUSTED, L2_PORT_FORWARDS */
	__u8 mac[6];
	__u16 reserved;
};

struct l2_frame {
	struct ethhdr ethernet;
	__u16 is_probe;		/* the request is for a duplicate of target: RFC 5227, RFC 4862 5.4 */
	__u32 kind;
	__be32 source[4];
	__be32 target[4];
};

static __always_inline int is_same_mac(const __u8 *one, const __u8 *other)
{
	return !((one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]) | (one[3] ^ other[3]) | (one[4] ^ other[4]) |
		 (one[5] ^ other[5]));
}

static __always_inline int is_group_mac(const __u8 *mac)
{
	return mac[0] & 1;
}

static __always_inline int is_broadcast_mac(const __u8 *mac)
{
	return (mac[0] & mac[1] & mac[2] & mac[3] & mac[4] & mac[5]) == 0xff;
}

/* RFC 2464 7 */
static __always_inline int is_ipv6_group_mac(const __u8 *mac)
{
	return mac[0] == 0x33 && mac[1] == 0x33;
}

/* 01:80:c2:00:00:0x: a bridge passes none of them on (802.1D 7.12.6). */
static __always_inline int is_reserved_mac(const __u8 *mac)
{
	return mac[0] == 0x01 && mac[1] == 0x80 && mac[2] == 0xc2 && !mac[3] && !mac[4] && mac[5] < 0x10;
}

static __always_inline void map_v4(__be32 mapped[4], __be32 address)
{
	mapped[0] = 0;
	mapped[1] = 0;
	mapped[2] = bpf_htonl(0xffff);
	mapped[3] = address;
}

static __always_inline int is_same_address(const __be32 one[4], const __be32 other[4])
{
	return !((one[0] ^ other[0]) | (one[1] ^ other[1]) | (one[2] ^ other[2]) | (one[3] ^ other[3]));
}

static __always_inline int is_unspecified(const __be32 address[4])
{
	return !(address[0] | address[1] | address[2] | address[3]);
}

/* Veth and taps move an outer tag out of the bytes into the packet's metadata. */
static __always_inline int is_tagged(const struct __sk_buff *skb, __be16 type)
{
	return skb->vlan_present || type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

/* What no network carries, whoever sends it: 0, or the reason. */
static __always_inline int find_frame_problem(const struct __sk_buff *skb, const struct ethhdr *ethernet)
{
	if (is_group_mac(ethernet->h_source))
		return L2_DROP_FORGED_MAC;
	if (is_tagged(skb, ethernet->h_proto))
		return L2_DROP_TAGGED;
	if (is_reserved_mac(ethernet->h_dest))
		return L2_DROP_BRIDGE_PROTOCOL;
	if (bpf_ntohs(ethernet->h_proto) < ETH_P_802_3_MIN)
		return L2_DROP_LLC;
	if (skb->gso_segs > 1 || skb->gso_size) /* TCP says 1 of each of its packets */
		return L2_DROP_SUPERPACKET;
	return 0;
}

static __always_inline int may_reach(__u32 network, __u32 from, __u32 to)
{
	struct l2_segment_key key = { .network = network, .from = from, .to = to };

	return from == to || bpf_map_lookup_elem(&unbounded_l2_segments, &key);
}

static __always_inline struct l2_fdb_entry *find_mac(__u32 network, const __u8 *mac)
{
	struct l2_fdb_key key = { .network = network };

	__builtin_memcpy(key.mac, mac, sizeof(key.mac));
	return bpf_map_lookup_elem(&unbounded_l2_fdb, &key);
}
