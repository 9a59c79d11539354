/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* The flow that a packet belongs to, as a hash: all packets of a flow take the same member of a group. */
#pragma once

#include <linux/bpf.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FRAGMENT_MASK 0x3fff	/* more fragments, or an offset: only the first one has ports, so none is used */
#define EXTENSION_HEADERS 6

/* Bob Jenkins' final mix (lookup3, public domain): each bit of the input changes half of the output's. */
static __always_inline __u32 mix(__u32 a, __u32 b, __u32 c)
{
#define ROTATE(value, bits) (((value) << (bits)) | ((value) >> (32 - (bits))))
	a += 0xdeadbeef + 12;
	b += 0xdeadbeef + 12;
	c += 0xdeadbeef + 12;
	c ^= b; c -= ROTATE(b, 14);
	a ^= c; a -= ROTATE(c, 11);
	b ^= a; b -= ROTATE(a, 25);
	c ^= b; c -= ROTATE(b, 16);
	a ^= c; a -= ROTATE(c, 4);
	b ^= a; b -= ROTATE(a, 14);
	c ^= b; c -= ROTATE(b, 24);
	return c;
#undef ROTATE
}

static __always_inline int has_ports(__u8 protocol)
{
	return protocol == IPPROTO_TCP || protocol == IPPROTO_UDP || protocol == IPPROTO_SCTP || protocol == IPPROTO_UDPLITE;
}

/* Source and destination port as one word; 0 where there are none. */
static __always_inline __u32 ports_at(struct __sk_buff *skb, __u32 offset)
{
	__u32 ports = 0;

	bpf_skb_load_bytes(skb, offset, &ports, sizeof(ports));
	return ports;
}

static __always_inline __u32 flow_hash_v4(struct __sk_buff *skb, __u32 offset, const struct iphdr *ip)
{
	__u32 ports = 0;

	if (has_ports(ip->protocol) && !(ip->frag_off & bpf_htons(FRAGMENT_MASK)))
		ports = ports_at(skb, offset + ip->ihl * 4);
	return mix(ip->saddr, ip->daddr, mix(ip->protocol, ports, 0));
}

static __always_inline __u32 fold_v6(const struct in6_addr *address)
{
	const __be32 *words = address->in6_u.u6_addr32;

	return mix(words[0] ^ words[1], words[2], words[3]);
}

static __always_inline __u32 flow_hash_v6(struct __sk_buff *skb, __u32 offset, const struct ipv6hdr *ip)
{
	__u8 next = ip->nexthdr;
	__u32 at = offset + sizeof(*ip), ports = 0;

	for (int i = 0; i < EXTENSION_HEADERS; i++) {
		__u8 header[2]; /* next header, length in 8 bytes less one */

		if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS)
			break;
		if (bpf_skb_load_bytes(skb, at, header, sizeof(header)))
			break;
		next = header[0];
		at += (header[1] + 1) * 8;
	}
	if (has_ports(next)) /* a fragment header ends the walk: fragments have no ports for us */
		ports = ports_at(skb, at);
	return mix(fold_v6(&ip->saddr), fold_v6(&ip->daddr), mix(next, ports, 0));
}
