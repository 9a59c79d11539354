/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The compatible data path. A packet for the overlay is routed into an anchor device; at its tc egress
 * unbounded_encap looks up the destination, writes tunnel metadata and redirects to the tunnel or WireGuard device.
 * At a tunnel's tc ingress unbounded_tunnel_ingress drops what does not belong to its sender and hands the rest to the
 * stack.
 *
 * A packet that has no endpoint is dropped at the anchor: it never leaves by another way in the clear.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "include/echo.h"
#include "include/endpoints.h"
#include "include/flow.h"
#include "include/nexthop.h"
#include "include/source.h"
#include "include/stats.h"

/* Goes on to the next program or to the stack: others may have programs at our devices too. */
#define PASS TC_ACT_UNSPEC

static __always_inline int lookup_v4(struct __sk_buff *skb, __u32 offset, struct hop *hop)
{
	struct lpm_key_v4 key = { .prefixlen = 32 };
	struct endpoint_v4 *endpoint;
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, offset, &ip, sizeof(ip)) || ip.ihl < 5)
		return STAT_DROP_MALFORMED;
	key.address = ip.daddr;
	endpoint = bpf_map_lookup_elem(&unbounded_endpoints_v4, &key);
	if (!endpoint)
		return STAT_DROP_NO_ENDPOINT;
	if (endpoint->flags & HOP_GROUP)
		return pick_member(endpoint->flags >> HOP_GROUP_SHIFT, flow_hash_v4(skb, offset, &ip), hop) ? STAT_DROP_NO_MEMBER : 0;
	hop->remote[0] = endpoint->remote;
	hop->vni = endpoint->vni;
	hop->ifindex = endpoint->ifindex;
	hop->flags = endpoint->flags;
	hop->protocol = endpoint->protocol;
	return 0;
}

static __always_inline int lookup(struct __sk_buff *skb, __u32 offset, struct hop *hop)
{
	if (skb->protocol == bpf_htons(ETH_P_IP))
		return lookup_v4(skb, offset, hop);
	if (skb->protocol == bpf_htons(ETH_P_IPV6))
		return find_hop_v6(skb, offset, hop);
	return STAT_DROP_NOT_IP;
}

/* Finds the next hop of the packet whose IP header is at offset. Returns 0 or the reason for which it is dropped. */
static __always_inline int find_hop(struct __sk_buff *skb, __u32 offset, struct hop *hop)
{
	int problem = lookup(skb, offset, hop);

	if (!problem && hop->flags & HOP_ECHO && turn_round(skb, offset))
		return STAT_DROP_MALFORMED;
	return problem;
}

/* Sends a packet that begins with an Ethernet header to its hop; a device without Ethernet strips it. */
static __always_inline int send(struct __sk_buff *skb, const struct hop *hop)
{
	if (hop->flags & HOP_SET_KEY) {
		if (write_macs(skb, hop))
			return drop(STAT_DROP_MALFORMED);
		if (set_tunnel_key(skb, hop))
			return drop(STAT_DROP_KEY);
	}
	count_redirect(hop->protocol);
	return bpf_redirect(hop->ifindex, 0);
}

/* tc egress of an anchor with Ethernet headers (dummy, ifb). Returns TC_ACT_REDIRECT or TC_ACT_SHOT. */
SEC("tc")
int unbounded_encap(struct __sk_buff *skb)
{
	struct hop hop = {};
	int problem = find_hop(skb, ETH_HLEN, &hop);

	return problem ? drop(problem) : send(skb, &hop);
}

/* tc egress of an anchor without Ethernet headers (tun): what goes into an Ethernet tunnel gets one first. */
SEC("tc")
int unbounded_encap_l3(struct __sk_buff *skb)
{
	struct hop hop = {};
	int problem = find_hop(skb, 0, &hop);
	__be16 protocol = skb->protocol;

	if (problem)
		return drop(problem);
	if (hop.protocol == PROTOCOL_WIREGUARD || hop.protocol == PROTOCOL_IPIP) {
		if ((hop.flags & HOP_SET_KEY) && set_tunnel_key(skb, &hop))
			return drop(STAT_DROP_KEY);
		count_redirect(hop.protocol);
		return bpf_redirect(hop.ifindex, 0);
	}
	if (bpf_skb_change_head(skb, ETH_HLEN, 0) ||
	    bpf_skb_store_bytes(skb, offsetof(struct ethhdr, h_proto), &protocol, sizeof(protocol), 0))
		return drop(STAT_DROP_MALFORMED);
	return send(skb, &hop);
}

/* An own echo that a gateway returned has an own source, which nobody else may bring. What is inside it, its agent checks. */
static __always_inline int find_source_problem(struct __sk_buff *skb, __u32 offset)
{
	struct forwarder_key sender = {};

	if (read_sender(skb, &sender))
		return STAT_DROP_KEY;
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		__be32 ends[2];
		int problem;

		if (bpf_skb_load_bytes(skb, offset + offsetof(struct iphdr, saddr), ends, sizeof(ends)))
			return STAT_DROP_MALFORMED;
		problem = source_problem_v4(ends[0], &sender);
		if (problem && ends[0] == ends[1] && is_echo_v4(echo_addresses(), ends[0]) && brings(&sender, BRINGS_ECHOES))
			return 0;
		return problem;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		__be32 ends[8];
		int problem;

		if (bpf_skb_load_bytes(skb, offset + offsetof(struct ipv6hdr, saddr), ends, sizeof(ends)))
			return STAT_DROP_MALFORMED;
		problem = source_problem_v6(ends, &sender);
		if (problem && is_echo_v6(echo_addresses(), ends) && is_echo_v6(echo_addresses(), ends + 4) &&
		    brings(&sender, BRINGS_ECHOES))
			return 0;
		return problem;
	}
	return STAT_DROP_NOT_IP;
}

static __always_inline int receive(struct __sk_buff *skb, __u32 offset)
{
	__u32 zero = 0;
	struct encap_config *config = bpf_map_lookup_elem(&unbounded_config, &zero);

	if (!config || !(config->flags & CONFIG_ANY_SOURCE)) {
		int problem = find_source_problem(skb, offset);

		if (problem)
			return drop(problem);
	}
	/* The inner MAC need not be ours when the node has several underlay addresses: the tunnel brought it to us. */
	if (skb->pkt_type != PACKET_HOST)
		bpf_skb_change_type(skb, PACKET_HOST);
	count(STAT_RECEIVED);
	return PASS;
}

/* tc ingress of vxlan0 and geneve0. Returns TC_ACT_UNSPEC (go on) or TC_ACT_SHOT. */
SEC("tc")
int unbounded_tunnel_ingress(struct __sk_buff *skb)
{
	return receive(skb, ETH_HLEN);
}

/* tc ingress of ipip0, whose packets begin with the IP header. */
SEC("tc")
int unbounded_tunnel_ingress_l3(struct __sk_buff *skb)
{
	return receive(skb, 0);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
