/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Neighbor discovery (RFC 4861) of an endpoint: whether it speaks for itself alone, and what it asks. */
#pragma once

#include <linux/icmpv6.h>
#include <linux/in.h>
#include <linux/ipv6.h>

#include "l2_arp.h"
#include "l2_checksum.h"

enum { ND_ROUTER_SOLICITATION = 133, ND_ROUTER_ADVERTISEMENT, ND_SOLICITATION, ND_ADVERTISEMENT, ND_REDIRECT };
enum { ND_SOURCE_MAC = 1, ND_TARGET_MAC = 2 };
#define ND_ROUTER 0x80000000
#define ND_SOLICITED 0x40000000
#define ND_OVERRIDE 0x20000000
#define ND_HOP_LIMIT 255
#define ND_OPTIONS 8	/* more than any sender has use for */
#define ND_AT (ETH_HLEN + sizeof(struct ipv6hdr))

struct nd_message {
	__u8 type;
	__u8 code;
	__sum16 checksum;
	__be32 flags;
	__be32 target[4];
};

static __always_inline int is_nd(__u8 type)
{
	return type >= ND_ROUTER_SOLICITATION && type <= ND_REDIRECT;
}

/* Every link-layer address in the options from at to end must be the endpoint's. */
static __noinline int find_option_problem(struct __sk_buff *skb, __u32 at, __u32 end, const struct l2_binding *binding)
{
	for (int i = 0; i < ND_OPTIONS; i++) {
		__u8 option[8]; /* type, length in 8 bytes, MAC */

		if (at == end)
			return 0;
		if (bpf_skb_load_bytes(skb, at, option, sizeof(option)) || !option[1])
			return L2_DROP_MALFORMED;
		if (option[0] == ND_SOURCE_MAC || option[0] == ND_TARGET_MAC) {
			if (option[1] != 1 || !is_same_mac(option + 2, binding->mac))
				return L2_DROP_FORGED_ND;
		}
		at += option[1] * 8;
		if (at > end)
			return L2_DROP_MALFORMED;
	}
	return at == end ? 0 : L2_DROP_MALFORMED;
}

/* The message follows the IPv6 header at once, and ends with the packet at end. */
static __noinline int find_nd_problem(struct __sk_buff *skb, __u32 end, const struct l2_binding *binding, struct l2_frame *frame)
{
	struct nd_message message;
	__u32 options = ND_AT + sizeof(message);

	if (bpf_skb_load_bytes(skb, ND_AT, &message, 8) || message.code)
		return L2_DROP_MALFORMED;
	if (message.type == ND_ROUTER_ADVERTISEMENT || message.type == ND_REDIRECT)
		return binding->flags & L2_PORT_TRUSTED ? 0 : L2_DROP_ROUTER;
	if (message.type == ND_ROUTER_SOLICITATION)
		return find_option_problem(skb, ND_AT + 8, end, binding);
	if (bpf_skb_load_bytes(skb, ND_AT, &message, sizeof(message)) || options > end)
		return L2_DROP_MALFORMED;
	__builtin_memcpy(frame->target, message.target, sizeof(frame->target));
	if (message.type == ND_SOLICITATION) {
		frame->kind = L2_REQUEST;
		frame->is_probe = is_unspecified(frame->source);
	} else {
		if (!is_own_address(binding, frame->target))
			return L2_DROP_FORGED_ND;
		if (!(message.flags & bpf_htonl(ND_SOLICITED)))
			frame->kind = L2_ANNOUNCEMENT;
	}
	return find_option_problem(skb, options, end, binding);
}

struct nd_answer {
	struct ethhdr ethernet;
	struct ipv6hdr ip;
	struct nd_message message;
	__u8 option[8];
} __attribute__((packed));

/* RFC 4861 7.2.4: who probes has no address yet, and hears the answer as a member of ff02::1. */
static __always_inline void address_nd_answer(struct nd_answer *answer, const struct l2_frame *frame)
{
	if (frame->is_probe) {
		answer->ethernet.h_dest[0] = 0x33;
		answer->ethernet.h_dest[1] = 0x33;
		answer->ethernet.h_dest[5] = 1;
		answer->ip.daddr.in6_u.u6_addr32[0] = bpf_htonl(0xff020000);
		answer->ip.daddr.in6_u.u6_addr32[3] = bpf_htonl(1);
		return;
	}
	__builtin_memcpy(answer->ethernet.h_dest, frame->ethernet.h_source, 6);
	__builtin_memcpy(&answer->ip.daddr, frame->source, 16);
}

/* Turns the solicitation into its answer. */
static __noinline int write_nd_answer(struct __sk_buff *skb, struct l2_frame *frame, struct l2_neighbor *neighbor)
{
	struct nd_answer answer = {};
	__u32 flags = ND_OVERRIDE | (frame->is_probe ? 0 : ND_SOLICITED) | (neighbor->flags & L2_NEIGHBOR_ROUTER ? ND_ROUTER : 0);

	if (skb->len != sizeof(answer) && bpf_skb_change_tail(skb, sizeof(answer), 0))
		return L2_DROP_MALFORMED;
	address_nd_answer(&answer, frame);
	__builtin_memcpy(answer.ethernet.h_source, neighbor->mac, 6);
	answer.ethernet.h_proto = bpf_htons(ETH_P_IPV6);
	answer.ip.version = 6;
	answer.ip.payload_len = bpf_htons(sizeof(answer.message) + sizeof(answer.option));
	answer.ip.nexthdr = IPPROTO_ICMPV6;
	answer.ip.hop_limit = ND_HOP_LIMIT;
	__builtin_memcpy(&answer.ip.saddr, frame->target, 16);
	answer.message.type = ND_ADVERTISEMENT;
	answer.message.flags = bpf_htonl(flags);
	__builtin_memcpy(answer.message.target, frame->target, 16);
	answer.option[0] = ND_TARGET_MAC;
	answer.option[1] = 1;
	__builtin_memcpy(answer.option + 2, neighbor->mac, 6);
	if (bpf_skb_store_bytes(skb, 0, &answer, sizeof(answer), 0) ||
	    write_icmpv6_checksum(skb, sizeof(answer.message) + sizeof(answer.option)))
		return L2_DROP_MALFORMED;
	return 0;
}
