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
	struct lpm_key_v6 key = { .prefixlen = 128 };
	struct endpoint_v6 *endpoint;
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return 0;
	__builtin_memcpy(key.address, &ip.daddr, sizeof(key.address));
	endpoint = bpf_map_lookup_elem(&unbounded_endpoints_v6, &key);
	if (!endpoint)
		return 0;
	if (endpoint->flags & HOP_GROUP) {
		if (pick_member(endpoint->flags >> HOP_GROUP_SHIFT, flow_hash_v6(skb, ETH_HLEN, &ip), hop))
			return 0;
	} else {
		__builtin_memcpy(hop, endpoint, sizeof(*hop));
	}
	return takes_frames(hop);
}
