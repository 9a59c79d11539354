/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* ARP and RARP (RFC 826, 903) of an endpoint: whether it speaks for itself alone, and what it asks. */
#pragma once

#include <stddef.h>

#include "l2_frame.h"

/* linux/if_arp.h needs headers of a C library. */
enum { ARP_ETHERNET = 1, ARP_REQUEST = 1, ARP_REPLY = 2, RARP_REQUEST = 3 };

struct l2_arp {
	__be16 hardware;
	__be16 protocol;
	__u8 hardware_length;
	__u8 protocol_length;
	__be16 operation;
	__u8 sender_mac[6];
	__be32 sender;
	__u8 target_mac[6];
	__be32 target;
} __attribute__((packed));

static __noinline int is_address_of_port(__u32 ifindex, const __be32 address[4])
{
	struct l2_address_key key = { .ifindex = ifindex };

	__builtin_memcpy(key.address, address, sizeof(key.address));
	return bpf_map_lookup_elem(&unbounded_l2_addresses, &key) != NULL;
}

static __always_inline struct l2_neighbor *find_neighbor(__u32 network, const __be32 address[4])
{
	struct l2_neighbor_key key = { .network = network };

	__builtin_memcpy(key.address, address, sizeof(key.address));
	return bpf_map_lookup_elem(&unbounded_l2_neighbors, &key);
}

/* Addresses of ports are listed; those of endpoints elsewhere are the ones that the Neighbor map has at their MAC, link-local ones too. */
static __noinline int is_own_address(const struct l2_binding *binding, const __be32 address[4])
{
	struct l2_neighbor *neighbor;

	if (binding->ifindex)
		return is_address_of_port(binding->ifindex, address);
	neighbor = find_neighbor(binding->network, address);
	return neighbor && is_same_mac(neighbor->mac, binding->mac);
}

static __always_inline int load_arp(struct __sk_buff *skb, struct l2_arp *arp)
{
	if (bpf_skb_load_bytes(skb, ETH_HLEN, arp, sizeof(*arp)))
		return L2_DROP_MALFORMED;
	if (arp->hardware != bpf_htons(ARP_ETHERNET) || arp->protocol != bpf_htons(ETH_P_IP) || arp->hardware_length != 6 ||
	    arp->protocol_length != 4)
		return L2_DROP_MALFORMED;
	return 0;
}

/* The request of a machine that has moved: it knows its MAC alone. */
static __always_inline int find_rarp_problem(const struct l2_arp *arp, const struct l2_binding *binding, struct l2_frame *frame)
{
	if (arp->operation != bpf_htons(RARP_REQUEST))
		return L2_DROP_MALFORMED;
	if (arp->sender || !is_same_mac(arp->target_mac, binding->mac))
		return L2_DROP_FORGED_ARP;
	frame->kind = L2_ANNOUNCEMENT;
	return 0;
}

static __noinline int find_arp_problem(struct __sk_buff *skb, const struct l2_binding *binding, struct l2_frame *frame)
{
	struct l2_arp arp;
	int is_request;

	if (load_arp(skb, &arp))
		return L2_DROP_MALFORMED;
	if (!is_same_mac(arp.sender_mac, binding->mac))
		return L2_DROP_FORGED_ARP;
	if (frame->ethernet.h_proto == bpf_htons(ETH_P_RARP))
		return find_rarp_problem(&arp, binding, frame);
	is_request = arp.operation == bpf_htons(ARP_REQUEST);
	if (!is_request && arp.operation != bpf_htons(ARP_REPLY))
		return L2_DROP_MALFORMED;
	map_v4(frame->source, arp.sender);
	map_v4(frame->target, arp.target);
	frame->is_probe = is_request && !arp.sender;
	if (!frame->is_probe && !is_own_address(binding, frame->source))
		return L2_DROP_FORGED_ARP;
	if (arp.sender == arp.target)
		frame->kind = arp.sender ? L2_ANNOUNCEMENT : L2_OTHER;
	else if (is_request)
		frame->kind = L2_REQUEST;
	return 0;
}

/* Turns the request into its answer. */
static __noinline int write_arp_answer(struct __sk_buff *skb, struct l2_frame *frame, struct l2_neighbor *neighbor)
{
	struct {
		struct ethhdr ethernet;
		struct l2_arp arp;
	} __attribute__((packed)) answer = {};

	if (load_arp(skb, &answer.arp))
		return L2_DROP_MALFORMED;
	__builtin_memcpy(answer.ethernet.h_dest, frame->ethernet.h_source, 6);
	__builtin_memcpy(answer.ethernet.h_source, neighbor->mac, 6);
	answer.ethernet.h_proto = bpf_htons(ETH_P_ARP);
	answer.arp.operation = bpf_htons(ARP_REPLY);
	__builtin_memcpy(answer.arp.target_mac, answer.arp.sender_mac, 6);
	__builtin_memcpy(answer.arp.sender_mac, neighbor->mac, 6);
	answer.arp.sender = frame->target[3];
	answer.arp.target = frame->source[3];
	return bpf_skb_store_bytes(skb, 0, &answer, sizeof(answer), 0) ? L2_DROP_MALFORMED : 0;
}
