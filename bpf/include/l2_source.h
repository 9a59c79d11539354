/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Source validation: an endpoint speaks for itself alone. At its port, and again where its frames come from its node, which may be compromised. */
#pragma once

#include "l2_arp.h"
#include "l2_ip.h"

/* 0, or the reason. Writes what the frame is. */
static __noinline int find_source_problem(struct __sk_buff *skb, const struct l2_binding *binding, struct l2_frame *frame)
{
	__be16 type = frame->ethernet.h_proto;

	if (!is_same_mac(frame->ethernet.h_source, binding->mac))
		return L2_DROP_FORGED_MAC;
	if (type == bpf_htons(ETH_P_ARP) || type == bpf_htons(ETH_P_RARP))
		return find_arp_problem(skb, binding, frame);
	if (type == bpf_htons(ETH_P_IP))
		return find_ipv4_problem(skb, binding, frame);
	if (type == bpf_htons(ETH_P_IPV6))
		return find_ipv6_problem(skb, binding, frame);
	return 0;
}
