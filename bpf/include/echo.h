/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Echoes (RFC 5880 6.4): packets of the node to itself that a gateway's forwarding returns. Their agents see to the rest; the programs
 * turn them round on their way out, and take them when they come back.
 */
#pragma once

#include <stddef.h>
#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_helpers.h>

#include "endpoints.h"

static __always_inline struct echo_addresses *echo_addresses(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&unbounded_echo, &zero);
}

static __always_inline int is_echo_v6(const struct echo_addresses *own, const __be32 address[4])
{
	return own && own->ipv6[0] && own->ipv6[0] == address[0] && own->ipv6[1] == address[1] && own->ipv6[2] == address[2] &&
	       own->ipv6[3] == address[3];
}

static __always_inline int is_echo_v4(const struct echo_addresses *own, __be32 address)
{
	return own && own->ipv4 && own->ipv4 == address;
}

/* The checksum of UDP, which covers the addresses; 0 stays: there is none. */
static __always_inline int follow_address(struct __sk_buff *skb, __u32 udp_at, __wsum difference)
{
	return bpf_l4_csum_replace(skb, udp_at + offsetof(struct udphdr, check), 0, difference,
				   BPF_F_PSEUDO_HDR | BPF_F_MARK_MANGLED_0);
}

/* Sends a packet of the echo address to that address itself; others stay as they are. Returns 0, or not when it could not. */
static __always_inline int turn_round_v4(struct __sk_buff *skb, __u32 offset)
{
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
		return -1;
	if (!is_echo_v4(echo_addresses(), ip.saddr) || ip.protocol != IPPROTO_UDP || ip.ihl != 5)
		return 0;
	if (bpf_l3_csum_replace(skb, offset + offsetof(struct iphdr, check), ip.daddr, ip.saddr, 4) ||
	    follow_address(skb, offset + sizeof(ip), bpf_csum_diff(&ip.daddr, 4, &ip.saddr, 4, 0)))
		return -1;
	return bpf_skb_store_bytes(skb, offset + offsetof(struct iphdr, daddr), &ip.saddr, 4, 0);
}

static __always_inline int turn_round_v6(struct __sk_buff *skb, __u32 offset)
{
	struct ipv6hdr ip;
	__be32 source[4], destination[4];

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)))
		return -1;
	__builtin_memcpy(source, &ip.saddr, sizeof(source));
	__builtin_memcpy(destination, &ip.daddr, sizeof(destination));
	if (!is_echo_v6(echo_addresses(), source) || ip.nexthdr != IPPROTO_UDP)
		return 0;
	if (follow_address(skb, offset + sizeof(ip), bpf_csum_diff(destination, 16, source, 16, 0)))
		return -1;
	return bpf_skb_store_bytes(skb, offset + offsetof(struct ipv6hdr, daddr), source, sizeof(source), 0);
}

static __always_inline int turn_round(struct __sk_buff *skb, __u32 offset)
{
	return skb->protocol == bpf_htons(ETH_P_IP) ? turn_round_v4(skb, offset) : turn_round_v6(skb, offset);
}
