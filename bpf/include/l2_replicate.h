/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Broadcast, unknown unicast and multicast: whether the network carries them, and to whom. */
#pragma once

#include "l2_bucket.h"
#include "l2_encap.h"

/* 0 when the network replicates such a frame, whose destination has no FDB entry. */
static __always_inline int find_policy_problem(const struct l2_frame *frame, __u32 flags)
{
	if (!is_group_mac(frame->ethernet.h_dest))
		return flags & L2_NETWORK_UNKNOWN ? 0 : L2_DROP_UNKNOWN;
	if (frame->kind == L2_ANNOUNCEMENT || frame->kind == L2_OWN_GROUP)
		return 0;
	if (frame->kind == L2_REQUEST || is_broadcast_mac(frame->ethernet.h_dest))
		return flags & L2_NETWORK_BROADCAST ? 0 : L2_DROP_BROADCAST;
	return flags & L2_NETWORK_MULTICAST ? 0 : L2_DROP_MULTICAST;
}

/* A token for each copy: a burst of frames is multiplied by the ports and nodes of the network before a tunnel queues it. */
static __noinline int may_replicate(__u32 ifindex, const struct l2_port *port)
{
	struct l2_buckets *buckets = bpf_map_lookup_elem(&unbounded_l2_buckets, &ifindex);
	__u32 network = port->network;
	struct l2_flood *flood = bpf_map_lookup_elem(&unbounded_l2_flood, &network);
	__u64 copies = flood ? flood->port_count + flood->node_count : 0;

	if (!buckets || !port->rate)
		return 0;
	return take_tokens(&buckets->replicated, NS_PER_S / port->rate, port->burst, copies ?: 1);
}

/* One copy, if the device is a port of the network that the segment may reach. */
static __noinline void copy_to_port(struct __sk_buff *skb, __u32 ifindex, __u32 network, __u32 segment)
{
	struct l2_port *port = bpf_map_lookup_elem(&unbounded_l2_ports, &ifindex);

	if (port && port->network == network && may_reach(network, segment, port->segment))
		bpf_clone_redirect(skb, ifindex, 0);
}

static __noinline void copy_to_ports(struct __sk_buff *skb, __u32 network, __u32 segment, __u32 except)
{
	struct l2_flood *flood = bpf_map_lookup_elem(&unbounded_l2_flood, &network);

	if (!flood)
		return;
	for (int i = 0; i < L2_FLOOD_PORTS; i++) {
		if (i >= flood->port_count)
			break;
		if (flood->ports[i] != except)
			copy_to_port(skb, flood->ports[i], network, segment);
	}
}

/* One copy to each node; the frame is then an outer packet. */
static __noinline int copy_to_nodes(struct __sk_buff *skb, struct l2_frame *frame, __u32 network)
{
	struct l2_flood *flood = bpf_map_lookup_elem(&unbounded_l2_flood, &network);
	struct l2_config *config = l2_config();
	int problem;

	if (!flood || !flood->node_count)
		return 0;
	if (!config)
		return L2_DROP_NO_NETWORK;
	problem = push_outer(skb, frame, network, SID_DT2M);
	if (problem)
		return problem;
	for (int i = 0; i < L2_FLOOD_NODES; i++) {
		__be32 locator[2];

		if (i >= flood->node_count)
			break;
		locator[0] = flood->locators[i][0];
		locator[1] = flood->locators[i][1];
		if (write_locator(skb, locator))
			return L2_DROP_ENCAP;
		bpf_clone_redirect(skb, config->ifindex, BPF_F_INGRESS);
	}
	return 0;
}

static __noinline int replicate(struct __sk_buff *skb, struct l2_port *port, struct l2_frame *frame)
{
	__u32 ifindex = skb->ifindex, network = port->network;
	int problem;

	if (!may_replicate(ifindex, port))
		return l2_drop(skb, L2_DROP_RATE);
	copy_to_ports(skb, network, port->segment, ifindex);
	problem = copy_to_nodes(skb, frame, network);
	if (problem)
		return l2_drop(skb, problem);
	l2_count(ifindex, L2_REPLICATED);
	return TC_ACT_SHOT; /* copies have gone; this one has done its service */
}
