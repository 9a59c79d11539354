/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Whether the inner source of a packet from a tunnel belongs to the peer that sent it. */
#pragma once

#include "endpoints.h"
#include "stats.h"

/* Up to the local address, which a kernel before 6.0 does not know and no other needs here. */
#define TUNNEL_KEY_BYTES offsetof(struct bpf_tunnel_key, local_ipv4)

/* Who sent a packet through a flow-based tunnel is known by the outer source. */
static __always_inline int read_sender(struct __sk_buff *skb, struct forwarder_key *sender)
{
	struct bpf_tunnel_key key = {};

	if (!bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_BYTES, 0)) {
		sender->address[0] = key.remote_ipv4;
		return 0;
	}
	if (bpf_skb_get_tunnel_key(skb, &key, TUNNEL_KEY_BYTES, BPF_F_TUNINFO_IPV6))
		return -1;
	__builtin_memcpy(sender->address, key.remote_ipv6, sizeof(sender->address));
	sender->is_ipv6 = 1;
	return 0;
}

static __always_inline int is_sender(const struct forwarder_key *sender, const __u32 remote[4], __u32 flags)
{
	if (!(flags & HOP_SET_KEY) || !!(flags & HOP_IPV6_UNDERLAY) != sender->is_ipv6)
		return 0;
	if (!sender->is_ipv6)
		return remote[0] == sender->address[0];
	return remote[0] == sender->address[0] && remote[1] == sender->address[1] &&
	       remote[2] == sender->address[2] && remote[3] == sender->address[3];
}

/* Any member may send for the prefixes of its group, also one that we do not send to at the moment. */
static __always_inline int is_member(__u32 group_index, const struct forwarder_key *sender)
{
	struct nexthop_group *group = bpf_map_lookup_elem(&unbounded_nexthop_groups, &group_index);

	if (!group)
		return 0;
	for (int i = 0; i < GROUP_MEMBERS; i++) {
		if (i >= group->count)
			break;
		if (is_sender(sender, group->members[i].remote, group->members[i].flags))
			return 1;
	}
	return 0;
}

static __always_inline int brings(const struct forwarder_key *sender, __u32 what)
{
	__u32 *bits = bpf_map_lookup_elem(&unbounded_forwarders, sender);

	return bits && *bits & what;
}

/* What a peer brings that is not its own: right for a forwarder, a forgery otherwise. */
static __always_inline int foreign_source(const struct forwarder_key *sender)
{
	return brings(sender, BRINGS_OTHERS) ? 0 : STAT_DROP_FORGED_SOURCE;
}

/*
 * 0: it is the peer's own, or another's and the peer may bring it. Otherwise the reason for which the packet is dropped.
 * A source without an endpoint (our own pods, strangers) comes from nobody.
 */
static __always_inline int source_problem_v4(__be32 source, const struct forwarder_key *sender)
{
	struct lpm_key_v4 key = { .prefixlen = 32, .address = source };
	struct endpoint_v4 *endpoint = bpf_map_lookup_elem(&unbounded_endpoints_v4, &key);
	__u32 remote[4] = {};

	if (!endpoint)
		return STAT_DROP_UNKNOWN_SOURCE;
	if (endpoint->flags & HOP_GROUP)
		return is_member(endpoint->flags >> HOP_GROUP_SHIFT, sender) ? 0 : foreign_source(sender);
	remote[0] = endpoint->remote;
	return is_sender(sender, remote, endpoint->flags) ? 0 : foreign_source(sender);
}

static __always_inline int source_problem_v6(const __be32 source[4], const struct forwarder_key *sender)
{
	struct lpm_key_v6 key = { .prefixlen = 128 };
	struct endpoint_v6 *endpoint;

	__builtin_memcpy(key.address, source, sizeof(key.address));
	endpoint = bpf_map_lookup_elem(&unbounded_endpoints_v6, &key);
	if (!endpoint)
		return STAT_DROP_UNKNOWN_SOURCE;
	if (endpoint->flags & HOP_GROUP)
		return is_member(endpoint->flags >> HOP_GROUP_SHIFT, sender) ? 0 : foreign_source(sender);
	return is_sender(sender, endpoint->remote, endpoint->flags) ? 0 : foreign_source(sender);
}
