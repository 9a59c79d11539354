/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* From an endpoint to the one next hop that a packet takes. */
#pragma once

#include <stddef.h>

#include "endpoints.h"
#include "flow.h"
#include "stats.h"

/* A next hop as the programs work on it, whichever map it came from. */
struct hop {
	__u32 remote[4];
	__u32 vni;
	__u32 ifindex;
	__u32 flags;
	__u32 protocol;
};

/*
 * -log2(hash / 2^32) with 16 bits behind the point: the exponential draw that makes weights exact shares. Between powers
 * of two, f + 0.3431 f (1 - f) is within 0.01 of log2(1 + f). A function of its own, so that it is verified once.
 */
__attribute__((noinline)) __u32 draw(__u32 hash)
{
	__u32 rest = hash | 1, exponent = 0, fraction;

	if (rest >> 16) {
		rest >>= 16;
		exponent += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		exponent += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		exponent += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		exponent += 2;
	}
	exponent += rest >> 1;
	/* The 16 bits behind the leading one. */
	fraction = (__u32)(((__u64)(hash | 1) << 16 >> exponent) & 0xffff);
	fraction += (__u32)((__u64)22486 * fraction / 65536 * (65536 - fraction) / 65536);
	return (32 << 16) - ((exponent << 16) + fraction);
}

/* Above every score: 2^37 is the largest. */
#define NEVER (1ULL << 62)

/* All ones when the condition, 0 or 1, holds. The compiler must not find out, or it would make branches of it again. */
static __always_inline __u64 mask_if(__u64 condition)
{
	__u64 mask = -condition;

	asm volatile("" : "+r"(mask));
	return mask;
}

/* The draw of a member for a flow, over its weight; NEVER for one that carries nothing. */
static __always_inline __u64 score_of(const struct group_member *member, __u32 flow)
{
	__u32 weight = member->weight;
	__u32 hash = mix(flow, member->ifindex, member->remote[0] ^ member->remote[1] ^ member->remote[2] ^ member->remote[3]);
	__u64 usable = mask_if((member->flags & HOP_HEALTHY) / HOP_HEALTHY & (weight | -weight) >> 31);

	return ((((__u64)draw(hash) << 16) / weight) & usable) | (NEVER & ~usable); /* BPF: what is divided by 0 is 0 */
}

/*
 * Weighted rendezvous hashing: every member draws a number from the flow and from its own identity, and the smallest
 * draw over weight wins. A member that leaves moves only its own flows, and one that comes takes only those it wins.
 * The loop has no branch but its end: the verifier of Linux 6.1 would walk both sides of each, 2^16 ways in all.
 */
static __always_inline int pick_member(__u32 group_index, __u32 flow, struct hop *hop)
{
	struct nexthop_group *group = bpf_map_lookup_elem(&unbounded_nexthop_groups, &group_index);
	__u64 best = NEVER, chosen = GROUP_MEMBERS;

	if (!group)
		return -1;
	for (int i = 0; i < GROUP_MEMBERS; i++) {
		__u64 score, lower;

		if (i >= group->count)
			break;
		score = score_of(&group->members[i], flow);
		lower = mask_if((score - best) >> 63);
		best = (score & lower) | (best & ~lower);
		chosen = (i & lower) | (chosen & ~lower);
	}
	if (chosen >= GROUP_MEMBERS)
		return -1;
	__builtin_memcpy(hop, &group->members[chosen], sizeof(*hop));
	return 0;
}

/* The next hop of the packet whose IPv6 header is at offset. Returns 0, or the reason why there is none. */
static __always_inline int find_hop_v6(struct __sk_buff *skb, __u32 offset, struct hop *hop)
{
	struct lpm_key_v6 key = { .prefixlen = 128 };
	struct endpoint_v6 *endpoint;
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
		return STAT_DROP_MALFORMED;
	__builtin_memcpy(key.address, &ip.daddr, sizeof(key.address));
	endpoint = bpf_map_lookup_elem(&unbounded_endpoints_v6, &key);
	if (!endpoint)
		return STAT_DROP_NO_ENDPOINT;
	if (endpoint->flags & HOP_GROUP)
		return pick_member(endpoint->flags >> HOP_GROUP_SHIFT, flow_hash_v6(skb, offset, &ip), hop) ? STAT_DROP_NO_MEMBER : 0;
	__builtin_memcpy(hop, endpoint, sizeof(*hop));
	return 0;
}

/*
 * The MAC of the receiver's tunnel device: 02:<four bytes>:ff. The bytes are those of a record with HOP_MAC, and otherwise follow
 * from the remote address: an IPv4 address itself, of an IPv6 one a hash (innerMac in libs/bpf-maps is the same). Addresses that
 * differ in their upper half only must not share a MAC: a VXLAN device drops what comes from its own.
 */
static __always_inline void inner_mac(const struct hop *hop, __u8 mac[6])
{
	__u32 word = hop->remote[0];
	__be32 bytes;

	if (hop->flags & HOP_MAC) {
		word = (hop->flags & ~HOP_PROTOCOL_MASK) | hop->protocol >> 16;
	} else if (hop->flags & HOP_IPV6_UNDERLAY) {
		word = 0;
		for (int i = 0; i < 4; i++) {
			word = (word ^ bpf_ntohl(hop->remote[i])) * 0x9e3779b1;
			word ^= word >> 15;
		}
	}
	bytes = bpf_htonl(word);
	mac[0] = 0x02;
	__builtin_memcpy(mac + 1, &bytes, sizeof(bytes));
	mac[5] = 0xff;
}

/* The inner Ethernet header of what goes into a tunnel. Returns 0, or what the kernel said. */
static __always_inline int write_macs(struct __sk_buff *skb, const struct hop *hop)
{
	__u32 zero = 0;
	__u8 macs[12] = {};
	struct encap_config *config = bpf_map_lookup_elem(&unbounded_config, &zero);

	inner_mac(hop, macs);
	if (!config || !config->own_mac[0])
		return bpf_skb_store_bytes(skb, 0, macs, 6, 0);
	__builtin_memcpy(macs + 6, config->own_mac, 6);
	return bpf_skb_store_bytes(skb, 0, macs, sizeof(macs), 0);
}

static __always_inline void count_redirect(__u32 protocol)
{
	protocol &= HOP_PROTOCOL_MASK;
	if (protocol == PROTOCOL_GENEVE)
		count(STAT_REDIRECTED_GENEVE);
	else if (protocol == PROTOCOL_VXLAN)
		count(STAT_REDIRECTED_VXLAN);
	else if (protocol == PROTOCOL_IPIP)
		count(STAT_REDIRECTED_IPIP);
	else if (protocol == PROTOCOL_WIREGUARD)
		count(STAT_REDIRECTED_WIREGUARD);
}

/* Writes the tunnel metadata of a hop. Returns 0, or what the kernel said. */
static __always_inline int set_tunnel_key(struct __sk_buff *skb, const struct hop *hop)
{
	struct bpf_tunnel_key key = { .tunnel_id = hop->vni, .tunnel_ttl = 64 };
	__u64 flags = BPF_F_DONT_FRAGMENT | BPF_F_ZERO_CSUM_TX; /* our receivers take a zero checksum over IPv6 too */
	struct local_addresses *own = NULL;
	__u32 zero = 0;

	if (hop->flags & HOP_OWN_SOURCE)
		own = bpf_map_lookup_elem(&unbounded_locals, &zero);
	if (hop->flags & HOP_IPV6_UNDERLAY) {
		__builtin_memcpy(key.remote_ipv6, hop->remote, sizeof(key.remote_ipv6));
		if (own)
			__builtin_memcpy(key.local_ipv6, own->ipv6, sizeof(key.local_ipv6));
		flags |= BPF_F_TUNINFO_IPV6;
	} else {
		key.remote_ipv4 = hop->remote[0];
		if (own)
			key.local_ipv4 = own->ipv4;
	}
	if (!bpf_skb_set_tunnel_key(skb, &key, sizeof(key), flags))
		return 0;
	/* A kernel before 6.0 knows no local address in the key, and chooses one. */
	return bpf_skb_set_tunnel_key(skb, &key, offsetof(struct bpf_tunnel_key, local_ipv4), flags);
}
