/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * What pods send to beyond their node, at the tc ingress of the bridge that they are behind: frames that a device would change on their
 * way out are dropped and counted (include/checksum_place.h). Everything else goes on.
 */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

#include "include/checksum_place.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} unbounded_pod_drops SEC(".maps");

/* Returns TC_ACT_UNSPEC (the next program) or TC_ACT_SHOT. */
SEC("tc")
int unbounded_pod_checksum(struct __sk_buff *skb)
{
	__u32 index = 0;
	__u64 *count;

	if (!has_forged_checksum_place(skb))
		return TC_ACT_UNSPEC;
	count = bpf_map_lookup_elem(&unbounded_pod_drops, &index);
	if (count)
		*count += 1;
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
