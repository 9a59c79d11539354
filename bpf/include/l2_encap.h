/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Frames between nodes: SRv6 with one segment, whose header is the IPv6 destination itself (RFC 8986 5.3, H.Encaps.L2.Red).
 *
 * A SID: 64 bits locator of the node, 16 bits function, 32 bits number of the network, 16 bits zero. The source is the sender's
 * locator followed by zeros: it says whose frame it is.
 *
 * The packet goes into an own Ethernet device as if it had come from a wire, and the stack routes it. It cannot go straight into a
 * tunnel device: bpf_skb_change_head leaves the network header at the inner packet, and a device without Ethernet headers would
 * strip everything in front of that.
 */
#pragma once

#include <linux/ipv6.h>

#include "flow.h"
#include "l2_frame.h"

#define SID_DT2U 1	/* unicast, by the receiver's FDB: RFC 8986 4.11 */
#define SID_DT2M 2	/* to all ports of the network: RFC 8986 4.12 */
#define NEXT_HEADER_ETHERNET 143
/*
 * Without bits 16 and 17, which stand where an IPv4 header has its ECN field: skb->protocol stays that of the inner packet, and since 2024
 * (skb_vlan_inet_prepare: GENEVE from Linux 6.9 on, then VXLAN, and stable kernels) both set the network header behind the Ethernet header. For IPv4
 * ip_tunnel_ecn_encap then copies these bits into the outer header. As ECT they would let a router mark the packet as CE, and the tunnel's other
 * end drop it, since the traffic class in here is not ECT (RFC 6040 4.2). What remains: ADR 0022.
 */
#define FLOW_LABEL 0xcffff

struct l2_outer {
	struct ethhdr ethernet;
	struct ipv6hdr ip;
} __attribute__((packed));

static __always_inline __u32 sid_word_2(__u32 function, __u32 network)
{
	return bpf_htonl(function << 16 | network >> 16);
}

static __always_inline __u32 sid_word_3(__u32 network)
{
	return bpf_htonl(network << 16);
}

/* RFC 6437: so that next-hop groups and links spread what goes between two nodes. */
static __noinline __u32 flow_of(struct __sk_buff *skb, struct l2_frame *frame)
{
	struct ipv6hdr ip6;
	struct iphdr ip;
	__u32 macs[3];

	if (frame->ethernet.h_proto == bpf_htons(ETH_P_IP) && !bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return flow_hash_v4(skb, ETH_HLEN, &ip);
	if (frame->ethernet.h_proto == bpf_htons(ETH_P_IPV6) && !bpf_skb_load_bytes(skb, ETH_HLEN, &ip6, sizeof(ip6)))
		return flow_hash_v6(skb, ETH_HLEN, &ip6);
	__builtin_memcpy(macs, &frame->ethernet, sizeof(macs));
	return mix(macs[0], macs[1], macs[2]);
}

/* Puts the outer headers in front of the frame; the destination's locator is still missing. */
static __noinline int push_outer(struct __sk_buff *skb, struct l2_frame *frame, __u32 network, __u32 function)
{
	struct l2_config *config = l2_config();
	struct l2_outer outer = {};
	__u32 flow = flow_of(skb, frame) & FLOW_LABEL;

	if (!config)
		return L2_DROP_NO_NETWORK;
	__builtin_memcpy(outer.ethernet.h_dest, config->mac, 6);
	__builtin_memcpy(outer.ethernet.h_source, config->mac, 6);
	outer.ethernet.h_proto = bpf_htons(ETH_P_IPV6);
	outer.ip.version = 6;
	outer.ip.flow_lbl[0] = flow >> 16;
	outer.ip.flow_lbl[1] = flow >> 8;
	outer.ip.flow_lbl[2] = flow;
	outer.ip.payload_len = bpf_htons(skb->len);
	outer.ip.nexthdr = NEXT_HEADER_ETHERNET;
	outer.ip.hop_limit = 64;
	outer.ip.saddr.in6_u.u6_addr32[0] = config->locator[0];
	outer.ip.saddr.in6_u.u6_addr32[1] = config->locator[1];
	outer.ip.daddr.in6_u.u6_addr32[2] = sid_word_2(function, network);
	outer.ip.daddr.in6_u.u6_addr32[3] = sid_word_3(network);
	if (bpf_skb_change_head(skb, sizeof(outer), 0) || bpf_skb_store_bytes(skb, 0, &outer, sizeof(outer), 0))
		return L2_DROP_ENCAP;
	return 0;
}

static __always_inline int write_locator(struct __sk_buff *skb, const __be32 locator[2])
{
	return bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, daddr), locator, 8, 0) ? L2_DROP_ENCAP : 0;
}
