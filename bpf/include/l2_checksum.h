/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* Checksums (RFC 1071) of the packets that the programs write. */
#pragma once

#include <stddef.h>
#include <linux/icmpv6.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define SUM_PIECE 32
#define SUM_PIECES 20

static __always_inline __sum16 fold_sum(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__sum16)~sum;
}

/* Adds the bytes of the packet from at on, whose number is a multiple of 8 and at most 640, to a sum; negative: there are fewer. */
static __noinline __s64 sum_packet(struct __sk_buff *skb, __u32 at, __u32 length, __u32 sum)
{
	for (int i = 0; i < SUM_PIECES; i++) {
		__be32 piece[SUM_PIECE / 4];

		if (length < SUM_PIECE)
			break;
		if (bpf_skb_load_bytes(skb, at, piece, sizeof(piece)))
			return -1;
		sum = (__u32)bpf_csum_diff(NULL, 0, piece, sizeof(piece), sum);
		at += SUM_PIECE;
		length -= SUM_PIECE;
	}
	for (int i = 0; i < SUM_PIECE / 8; i++) {
		__be32 piece[2];

		if (!length)
			break;
		if (bpf_skb_load_bytes(skb, at, piece, sizeof(piece)))
			return -1;
		sum = (__u32)bpf_csum_diff(NULL, 0, piece, sizeof(piece), sum);
		at += sizeof(piece);
		length -= sizeof(piece);
	}
	return sum;
}

/* Of an ICMPv6 message of that length, whose field is zero, right behind the IPv6 header. Returns 0, or not when it could not. */
static __noinline int write_icmpv6_checksum(struct __sk_buff *skb, __u32 length)
{
	__u32 addresses = ETH_HLEN + offsetof(struct ipv6hdr, saddr);
	__be32 pseudo[2] = { bpf_htonl(length), bpf_htonl(IPPROTO_ICMPV6) };
	__s64 sum = sum_packet(skb, addresses, 32 + length, (__u32)bpf_csum_diff(NULL, 0, pseudo, sizeof(pseudo), 0));
	__sum16 checksum;

	if (sum < 0)
		return -1;
	checksum = fold_sum(sum);
	return bpf_skb_store_bytes(skb, ETH_HLEN + sizeof(struct ipv6hdr) + offsetof(struct icmp6hdr, icmp6_cksum), &checksum,
				   sizeof(checksum), 0);
}
