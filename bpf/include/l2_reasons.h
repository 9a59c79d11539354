/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Where a frame of a stretched network went, or why it was dropped: counted for the device at which that was decided. */
#pragma once

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

/* No drop is 0: functions that look for a problem return 0 when there is none. */
enum l2_reason {
	L2_FORWARDED,			/* to a port of this node */
	L2_ENCAPSULATED,		/* to the node of its destination */
	L2_REPLICATED,			/* to the ports and nodes of the network */
	L2_RECEIVED,			/* from another node, handed to a port or to several */
	L2_ANSWERED_ARP,
	L2_ANSWERED_ND,
	L2_ANSWERED_TOO_BIG,		/* by an ICMP error */
	L2_DROP_NO_PORT,		/* the device has no record */
	L2_DROP_NO_NETWORK,		/* the network, or the node's own configuration, has no record */
	L2_DROP_MALFORMED,		/* shorter than its headers say, or not what a header may say */
	L2_DROP_FORGED_MAC,
	L2_DROP_FORGED_ARP,		/* sender's MAC or address */
	L2_DROP_FORGED_ND,		/* target, or a link-layer address in an option */
	L2_DROP_FORGED_ADDRESS,		/* IP source */
	L2_DROP_TAGGED,			/* 802.1Q, 802.1ad */
	L2_DROP_BRIDGE_PROTOCOL,	/* 802.1D's reserved destinations: spanning tree, LLDP, … */
	L2_DROP_LLC,			/* a length where the type should be */
	L2_DROP_DHCP_REPLY,		/* of a port that is no server */
	L2_DROP_ROUTER,			/* router advertisement or redirect of a port that is no router */
	L2_DROP_ND_EXTENSIONS,		/* RFC 6980 */
	L2_DROP_SUPERPACKET,		/* the kernel cannot segment next header 143 */
	L2_DROP_TOO_BIG,		/* unanswered: no error may be sent about it, or too many were */
	L2_DROP_OWN_PROBE,		/* a port that asks for its own address must not hear an answer */
	L2_DROP_SAME_PORT,		/* the destination is where it came from */
	L2_DROP_SEGMENT,		/* the segments may not talk */
	L2_DROP_UNKNOWN,		/* no FDB entry, and the network does not replicate such frames */
	L2_DROP_BROADCAST,
	L2_DROP_MULTICAST,
	L2_DROP_RATE,			/* more to replicate than the port may cause */
	L2_DROP_ENCAP,			/* the kernel gave no room */
	L2_DROP_NOT_SID,		/* the outer destination is no SID of this node */
	L2_DROP_UNKNOWN_SOURCE,		/* no FDB entry for the inner source */
	L2_DROP_FORGED_NODE,		/* the outer source is not the node of the inner one */
	L2_DROP_NOT_LOCAL,		/* from another node, for no port of this one */
	L2_REASON_COUNT,
};

/* 8 bytes */
struct l2_counter_key {
	__u32 ifindex;
	__u32 reason;
};

/* User space makes the entries of a port with the port, so that packets cannot fill the map. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct l2_counter_key);
	__type(value, __u64);
} unbounded_l2_counters SEC(".maps");

/* What has no entry there. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, L2_REASON_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} unbounded_l2_totals SEC(".maps");

static __noinline void l2_count(__u32 ifindex, __u32 reason)
{
	struct l2_counter_key key = { .ifindex = ifindex, .reason = reason };
	__u64 *value = bpf_map_lookup_elem(&unbounded_l2_counters, &key);

	if (!value)
		value = bpf_map_lookup_elem(&unbounded_l2_totals, &reason);
	if (value)
		(*value)++;
}

static __always_inline int l2_drop(struct __sk_buff *skb, __u32 reason)
{
	l2_count(skb->ifindex, reason);
	return TC_ACT_SHOT;
}
