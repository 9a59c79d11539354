/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Path MTU discovery (RFC 1191, 8201) at the port: the network has one MTU, and what exceeds it is answered in the destination's name. */
#pragma once

#include <linux/icmpv6.h>

#include "l2_bucket.h"
#include "l2_ip.h"

#define QUOTE 512	/* bytes of the packet in the answer: within the 576 of RFC 1812 and the 1280 of RFC 4443 */
#define ERROR_INTERVAL (NS_PER_S / 10)
#define ERROR_BURST 10
#define DONT_FRAGMENT 0x4000

/* linux/icmp.h needs headers of a C library. */
enum { ICMP_ECHO_REPLY = 0, ICMP_UNREACHABLE = 3, ICMP_ECHO_REQUEST = 8, ICMP_FRAGMENTATION_NEEDED = 4 };

struct icmp_unreachable {
	__u8 type;
	__u8 code;
	__sum16 checksum;
	__be16 unused;
	__be16 mtu;
};

/* Leaves the first bytes of the packet, behind an Ethernet header and room for headers of that length. */
static __always_inline int make_room(struct __sk_buff *skb, __u32 headers)
{
	return bpf_skb_change_tail(skb, ETH_HLEN + QUOTE, 0) || bpf_skb_change_head(skb, headers, 0);
}

static __always_inline int may_answer_error(__u32 ifindex)
{
	struct l2_buckets *buckets = bpf_map_lookup_elem(&unbounded_l2_buckets, &ifindex);

	return buckets && take_tokens(&buckets->errors, ERROR_INTERVAL, ERROR_BURST, 1);
}

static __always_inline void turn_ethernet(struct ethhdr *answer, const struct ethhdr *asked)
{
	__builtin_memcpy(answer->h_dest, asked->h_source, 6);
	__builtin_memcpy(answer->h_source, asked->h_dest, 6);
	answer->h_proto = asked->h_proto;
}

/* RFC 1122 3.2.2: no error about an error, a group or a fragment that is not the first. */
static __always_inline int is_answered_v4(struct __sk_buff *skb, const struct iphdr *ip)
{
	__u8 type = ICMP_ECHO_REQUEST;

	if (!(ip->frag_off & bpf_htons(DONT_FRAGMENT)) || ip->frag_off & bpf_htons(FRAGMENT_OFFSET))
		return 0;
	if (bpf_ntohl(ip->daddr) >= 0xe0000000)
		return 0;
	if (ip->protocol == IPPROTO_ICMP && bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, &type, sizeof(type)))
		return 0;
	return type == ICMP_ECHO_REQUEST || type == ICMP_ECHO_REPLY;
}

/* Returns 0 when the packet has become the answer, else the reason for which it is dropped. */
static __noinline int write_fragmentation_needed(struct __sk_buff *skb, struct l2_frame *frame, __u32 mtu)
{
	struct {
		struct ethhdr ethernet;
		struct iphdr ip;
		struct icmp_unreachable icmp;
	} __attribute__((packed)) answer = {};
	struct iphdr ip, *header = &ip;
	__be32 words[5] = {};
	struct icmp_unreachable icmp = { .type = ICMP_UNREACHABLE, .code = ICMP_FRAGMENTATION_NEEDED };
	__s64 sum;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || !is_answered_v4(skb, header) || !may_answer_error(skb->ifindex) ||
	    make_room(skb, sizeof(answer) - ETH_HLEN))
		return L2_DROP_TOO_BIG;
	icmp.mtu = bpf_htons(mtu);
	sum = sum_packet(skb, sizeof(answer), QUOTE, (__u32)bpf_csum_diff(NULL, 0, (__be32 *)&icmp, sizeof(icmp), 0));
	if (sum < 0)
		return L2_DROP_TOO_BIG;
	icmp.checksum = fold_sum(sum);
	words[0] = bpf_htonl(0x45000000 | (sizeof(answer) - ETH_HLEN + QUOTE));
	words[2] = bpf_htonl(64 << 24 | IPPROTO_ICMP << 16);
	words[3] = ip.daddr;
	words[4] = ip.saddr;
	turn_ethernet(&answer.ethernet, &frame->ethernet);
	__builtin_memcpy(&answer.ip, words, sizeof(words));
	answer.ip.check = fold_sum(bpf_csum_diff(NULL, 0, words, sizeof(words), 0));
	__builtin_memcpy(&answer.icmp, &icmp, sizeof(icmp));
	return bpf_skb_store_bytes(skb, 0, &answer, sizeof(answer), 0) ? L2_DROP_TOO_BIG : 0;
}

/* RFC 4443 2.4 (e) would let a group be answered; its address is no source, though. */
static __always_inline int is_answered_v6(struct __sk_buff *skb, const struct ipv6hdr *ip)
{
	struct l2_last_header last = {};
	__u8 type = ICMPV6_ECHO_REQUEST;

	last.at = ND_AT;
	last.end = ND_AT + bpf_ntohs(ip->payload_len);
	last.protocol = ip->nexthdr;
	if (ip->daddr.in6_u.u6_addr8[0] == 0xff || find_last_header(skb, &last))
		return 0;
	if (last.protocol == IPPROTO_ICMPV6 && bpf_skb_load_bytes(skb, last.at, &type, sizeof(type)))
		return 0;
	return type >= ICMPV6_ECHO_REQUEST && last.protocol != IPPROTO_FRAGMENT;
}

static __noinline int write_packet_too_big(struct __sk_buff *skb, struct l2_frame *frame, __u32 mtu)
{
	struct {
		struct ethhdr ethernet;
		struct ipv6hdr ip;
		struct icmp6hdr icmp;
	} __attribute__((packed)) answer = {};
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || !is_answered_v6(skb, &ip) || !may_answer_error(skb->ifindex) ||
	    make_room(skb, sizeof(answer) - ETH_HLEN))
		return L2_DROP_TOO_BIG;
	turn_ethernet(&answer.ethernet, &frame->ethernet);
	answer.ip.version = 6;
	answer.ip.payload_len = bpf_htons(sizeof(answer.icmp) + QUOTE);
	answer.ip.nexthdr = IPPROTO_ICMPV6;
	answer.ip.hop_limit = 64;
	__builtin_memcpy(&answer.ip.saddr, &ip.daddr, 16);
	__builtin_memcpy(&answer.ip.daddr, &ip.saddr, 16);
	answer.icmp.icmp6_type = ICMPV6_PKT_TOOBIG;
	answer.icmp.icmp6_dataun.un_data32[0] = bpf_htonl(mtu);
	if (bpf_skb_store_bytes(skb, 0, &answer, sizeof(answer), 0) ||
	    write_icmpv6_checksum(skb, sizeof(answer.icmp) + QUOTE))
		return L2_DROP_TOO_BIG;
	return 0;
}

static __always_inline int answer_too_big(struct __sk_buff *skb, struct l2_frame *frame, __u32 mtu)
{
	if (frame->ethernet.h_proto == bpf_htons(ETH_P_IP))
		return write_fragmentation_needed(skb, frame, mtu);
	if (frame->ethernet.h_proto == bpf_htons(ETH_P_IPV6))
		return write_packet_too_big(skb, frame, mtu);
	return L2_DROP_TOO_BIG;
}
