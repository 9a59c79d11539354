/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Where the checksum of a frame is still to be filled in (CHECKSUM_PARTIAL): a device does that when the frame leaves, after everybody
 * has looked at it. Whoever has a packet socket with PACKET_VNET_HDR chooses the place and, by the bytes that are summed up, the value, and so
 * rewrites a port or an address that was checked. The stack itself means the checksum of TCP, UDP or SCTP, of the packet or of one that
 * it carries.
 */
#pragma once

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define CHECKSUM_PLACE_EXTENSIONS 6
#define CHECKSUM_PARTIAL 3
#define IP_FRAGMENT 0x3fff /* more fragments, or an offset */

/* include/linux/skbuff.h; where the kernel has these is found when the program is loaded. */
struct sk_buff___checksum {
	unsigned char *head;
	unsigned char *data;
	__u8 ip_summed : 2;
	__u16 csum_start; /* from head */
	__u16 csum_offset; /* from csum_start */
} __attribute__((preserve_access_index));

/* Linux 6.2 */
extern void *bpf_cast_to_kern_ctx(void *) __ksym;

/* What follows the IP header and its extensions, or neither: then protocol is IPPROTO_NONE. */
struct transport {
	__u32 at;
	__u8 protocol;
};

#define GRE_HAS_CHECKSUM 0x80 /* of the first byte: RFC 2784 */
#define GRE_CHECKSUM_AT 4

static __always_inline struct transport find_transport_v4(struct __sk_buff *skb)
{
	struct transport none = { .protocol = IPPROTO_NONE };
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5 ||
	    ip.frag_off & bpf_htons(IP_FRAGMENT))
		return none;
	return (struct transport){ .at = ETH_HLEN + ip.ihl * 4, .protocol = ip.protocol };
}

static __always_inline struct transport find_transport_v6(struct __sk_buff *skb)
{
	struct transport none = { .protocol = IPPROTO_NONE };
	struct transport found = { .at = ETH_HLEN + sizeof(struct ipv6hdr) };
	struct ipv6hdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.version != 6)
		return none;
	found.protocol = ip.nexthdr;
	for (int i = 0; i < CHECKSUM_PLACE_EXTENSIONS; i++) {
		__u8 header[2]; /* next header, length in 8 bytes less one */

		if (found.protocol != IPPROTO_HOPOPTS && found.protocol != IPPROTO_ROUTING && found.protocol != IPPROTO_DSTOPTS)
			return found;
		if (bpf_skb_load_bytes(skb, found.at, header, sizeof(header)))
			return none;
		found.protocol = header[0];
		found.at += (header[1] + 1) * 8;
	}
	return none;
}

/* Whether `place` is the checksum of the protocol, or behind all that anybody looks at: in what it carries. */
static __always_inline int is_checksum_of(struct __sk_buff *skb, struct transport transport, __u32 place)
{
	__u32 offset = place - transport.at;
	__u8 first = 0;

	if (place < transport.at)
		return 0;
	switch (transport.protocol) {
	case IPPROTO_TCP:
		return offset == 16 || offset >= 20;
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
		return offset >= 6;
	case IPPROTO_GRE:
		if (offset == GRE_CHECKSUM_AT && !bpf_skb_load_bytes(skb, transport.at, &first, sizeof(first)))
			return first & GRE_HAS_CHECKSUM;
		return offset >= 8;
	case IPPROTO_SCTP:
	case IPPROTO_IPIP:
	case IPPROTO_IPV6:
		return offset >= 8;
	default: /* ICMP and others are summed up by whoever sends them; of a fragment there is no such checksum */
		return 0;
	}
}

/* Whether a device would write into the frame where no checksum is. */
static __always_inline int has_forged_checksum_place(struct __sk_buff *skb)
{
	struct transport transport = { .protocol = IPPROTO_NONE };
	struct sk_buff___checksum *kernel;
	__u32 place;

	kernel = bpf_cast_to_kern_ctx(skb);
	if (BPF_CORE_READ_BITFIELD(kernel, ip_summed) != CHECKSUM_PARTIAL)
		return 0;
	place = kernel->csum_start + kernel->csum_offset - (__u32)(kernel->data - kernel->head);
	if (skb->protocol == bpf_htons(ETH_P_IP))
		transport = find_transport_v4(skb);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		transport = find_transport_v6(skb);
	return !is_checksum_of(skb, transport, place);
}
