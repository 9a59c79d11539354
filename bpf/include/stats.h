/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Why a packet went where it went: per-CPU counters, an index for each reason. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

enum stat {
	STAT_REDIRECTED_GENEVE,
	STAT_REDIRECTED_VXLAN,
	STAT_REDIRECTED_IPIP,
	STAT_REDIRECTED_WIREGUARD,
	STAT_DROP_NO_ENDPOINT,		/* no entry for the destination */
	STAT_DROP_NO_MEMBER,		/* the group is missing, or none of its members is healthy */
	STAT_DROP_MALFORMED,		/* shorter than its headers say */
	STAT_DROP_NOT_IP,
	STAT_DROP_KEY,			/* the kernel took no tunnel key */
	STAT_RECEIVED,			/* from a tunnel, source checked */
	STAT_DROP_FORGED_SOURCE,	/* the inner source belongs to another peer */
	STAT_DROP_UNKNOWN_SOURCE,	/* the inner source belongs to nobody */
	STAT_COUNT,
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STAT_COUNT);
	__type(key, __u32);
	__type(value, __u64);
} unbounded_stats SEC(".maps");

static __always_inline void count(__u32 reason)
{
	__u64 *value = bpf_map_lookup_elem(&unbounded_stats, &reason);

	if (value)
		(*value)++;
}

static __always_inline int drop(__u32 reason)
{
	count(reason);
	return 2; /* TC_ACT_SHOT */
}
