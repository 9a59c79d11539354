/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * From a port straight into the tunnel to the node of a frame, past the node's forwarding. The records are those that the data path goes
 * by, in the same maps: the agent opens them for these programs where the data path is of eBPF. Elsewhere there are none, and a packet that
 * finds no record, or none of a tunnel that takes Ethernet frames (see l2_encap.h), goes by the stack.
 */
#pragma once

#include "l2_encap.h"
#include "nexthop.h"

static __always_inline int takes_frames(const struct hop *hop)
{
	__u32 protocol = hop->protocol & HOP_PROTOCOL_MASK;

	return hop->flags & HOP_SET_KEY && (protocol == PROTOCOL_VXLAN || protocol == PROTOCOL_GENEVE);
}

/* Whether there is a tunnel for the packet, whose outer headers are complete; which. */
static __noinline int find_tunnel(struct __sk_buff *skb, struct hop *hop)
{
	return !find_hop_v6(skb, ETH_HLEN, hop) && takes_frames(hop);
}
