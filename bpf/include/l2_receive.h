/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Frames from other nodes: End.DT2U and End.DT2M (RFC 8986 4.11, 4.12). */
#pragma once

#include "l2_replicate.h"
#include "l2_source.h"

#define SHORTEST_FRAME 60	/* 802.3, without the checksum: a port may see padding, and the kernel takes no less than an IP header off */
/* Linux 6.3; what is in older headers is no matter. */
#define DECAP_L3_IPV4 (1ULL << 7)

struct l2_received {
	struct l2_outer outer;
	struct ethhdr inner;
	__u32 function;
	__u32 network;
	__u32 segment;
	__u32 flags;		/* of the inner source's FDB entry */
} __attribute__((packed));

/* Whether the packet is for a SID of this node, and whole. */
static __noinline int read_received(struct __sk_buff *skb, struct l2_received *received)
{
	struct l2_config *config = l2_config();
	__be32 destination[4];
	__u32 words[2];

	if (!config)
		return L2_DROP_NO_NETWORK;
	if (skb->protocol != bpf_htons(ETH_P_IPV6) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, daddr), destination, sizeof(destination)))
		return L2_DROP_NOT_SID;
	words[0] = bpf_ntohl(destination[2]);
	words[1] = bpf_ntohl(destination[3]);
	received->function = words[0] >> 16;
	received->network = words[0] << 16 | words[1] >> 16;
	if (destination[0] != config->locator[0] || destination[1] != config->locator[1] || words[1] & 0xffff ||
	    (received->function != SID_DT2U && received->function != SID_DT2M))
		return L2_DROP_NOT_SID;
	if (bpf_skb_load_bytes(skb, 0, received, sizeof(struct l2_outer) + sizeof(struct ethhdr)) ||
	    received->outer.ip.nexthdr != NEXT_HEADER_ETHERNET ||
	    bpf_ntohs(received->outer.ip.payload_len) != skb->len - sizeof(struct l2_outer))
		return L2_DROP_MALFORMED;
	return find_frame_problem(skb, &received->inner);
}

/* Whether the node that sent the frame is that of its source: another would speak in the name of endpoints that it does not have. */
static __noinline int find_node_problem(struct l2_received *received)
{
	__u32 network = received->network;
	struct l2_fdb_entry *source;
	__be32 sender[4];

	if (!bpf_map_lookup_elem(&unbounded_l2_networks, &network))
		return L2_DROP_NOT_SID;
	source = find_mac(network, received->inner.h_source);
	if (!source)
		return L2_DROP_UNKNOWN_SOURCE;
	__builtin_memcpy(sender, &received->outer.ip.saddr, sizeof(sender));
	if (source->ifindex || sender[0] != source->locator[0] || sender[1] != source->locator[1] || sender[2] || sender[3])
		return L2_DROP_FORGED_NODE;
	received->segment = source->segment;
	received->flags = source->flags;
	return 0;
}

/* Takes the outer headers off. */
static __noinline int decapsulate(struct __sk_buff *skb, struct l2_received *received)
{
	__u64 is_ipv6 = received->inner.h_proto == bpf_htons(ETH_P_IPV6);

	if (skb->len < sizeof(struct l2_outer) + SHORTEST_FRAME &&
	    bpf_skb_change_tail(skb, sizeof(struct l2_outer) + SHORTEST_FRAME, 0))
		return L2_DROP_ENCAP;
	/* Behind an IPv6 header the kernel looks for an IPv6 packet, unless it is told: since Linux 6.3 it can be. */
	if (is_ipv6 || bpf_skb_adjust_room(skb, -(__s32)sizeof(struct l2_outer), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO | DECAP_L3_IPV4)) {
		if (bpf_skb_adjust_room(skb, -(__s32)sizeof(struct l2_outer), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
			return L2_DROP_ENCAP;
	}
	return bpf_skb_store_bytes(skb, 0, &received->inner, sizeof(received->inner), 0) ? L2_DROP_ENCAP : 0;
}

/*
 * Whether the endpoint may send the frame, which stands without outer headers. Its node has checked that at the port; a compromised node
 * would else speak with the MAC of one endpoint in the name of all others.
 */
static __noinline int find_endpoint_problem(struct __sk_buff *skb, const struct l2_received *received)
{
	struct l2_binding binding = { .network = received->network, .flags = received->flags };
	struct l2_frame frame = { .ethernet = received->inner };

	__builtin_memcpy(binding.mac, received->inner.h_source, sizeof(binding.mac));
	return find_source_problem(skb, &binding, &frame);
}

/* To the port of the destination, else to all when it was sent to all. Never to a node again. */
static __noinline int deliver(struct __sk_buff *skb, struct l2_received *received)
{
	__u32 network = received->network, segment = received->segment;
	struct l2_fdb_entry *entry = NULL;

	if (!is_group_mac(received->inner.h_dest))
		entry = find_mac(network, received->inner.h_dest);
	if (entry && entry->ifindex) {
		if (!may_reach(network, segment, entry->segment))
			return l2_drop(skb, L2_DROP_SEGMENT);
		l2_count(skb->ifindex, L2_RECEIVED);
		return bpf_redirect(entry->ifindex, 0);
	}
	if (received->function != SID_DT2M || entry)
		return l2_drop(skb, L2_DROP_NOT_LOCAL);
	copy_to_ports(skb, network, segment, 0);
	l2_count(skb->ifindex, L2_RECEIVED);
	return TC_ACT_SHOT; /* copies have gone; this one has done its service */
}
