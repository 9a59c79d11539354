/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* IP packets of an endpoint: whether the source is its own, and whether it plays a server or a router that it is not. */
#pragma once

#include <linux/ip.h>
#include <linux/udp.h>

#include "l2_nd.h"

#define DHCP_SERVER 67
#define DHCP_CLIENT 68
#define DHCPV6_CLIENT 546
#define DHCPV6_SERVER 547
#define FRAGMENT_OFFSET 0x1fff
#define MLD_REPORT 131
#define MLDV2_REPORT 143
#define L2_EXTENSION_HEADERS 6

/* RFC 2131 4.1: a client without an address asks from 0.0.0.0. */
static __always_inline int is_dhcp_request(const struct iphdr *ip, const __be16 ports[2])
{
	return ip->protocol == IPPROTO_UDP && ip->daddr == 0xffffffff && ports[0] == bpf_htons(DHCP_CLIENT) &&
	       ports[1] == bpf_htons(DHCP_SERVER);
}

/* What a server sends, or what a client takes for it: clients choose by the port to which it is sent, and many look at no other. */
static __always_inline int is_dhcp_reply(const __be16 ports[2], __u16 server, __u16 client)
{
	return ports[0] == bpf_htons(server) || ports[1] == bpf_htons(client);
}

/* Of UDP at that place of a packet that ends there: its ports, none of which is to be seen behind the end alone. */
static __noinline int load_ports(struct __sk_buff *skb, __u32 at, __u32 end, __be16 ports[2])
{
	if (at + sizeof(struct udphdr) > end || bpf_skb_load_bytes(skb, at, ports, 2 * sizeof(ports[0])))
		return L2_DROP_MALFORMED;
	return 0;
}

static __noinline int find_ipv4_problem(struct __sk_buff *skb, const struct l2_binding *binding, struct l2_frame *frame)
{
	struct iphdr ip;
	__be16 ports[2] = {};

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl < 5 ||
	    bpf_ntohs(ip.tot_len) < ip.ihl * 4 || bpf_ntohs(ip.tot_len) > skb->len - ETH_HLEN)
		return L2_DROP_MALFORMED;
	map_v4(frame->source, ip.saddr);
	if (ip.protocol == IPPROTO_UDP && !(ip.frag_off & bpf_htons(FRAGMENT_OFFSET))) {
		if (load_ports(skb, ETH_HLEN + ip.ihl * 4, ETH_HLEN + bpf_ntohs(ip.tot_len), ports))
			return L2_DROP_MALFORMED;
		if (is_dhcp_reply(ports, DHCP_SERVER, DHCP_CLIENT) && !(binding->flags & L2_PORT_TRUSTED))
			return L2_DROP_DHCP_REPLY;
	}
	if (binding->flags & L2_PORT_FORWARDS || is_own_address(binding, frame->source))
		return 0;
	return !ip.saddr && is_dhcp_request(&ip, ports) ? 0 : L2_DROP_FORGED_ADDRESS;
}

/* The header behind the extension headers; that of a later fragment is not to be seen, and counts as a fragment header. */
struct l2_last_header {
	__u32 at;
	__u32 end; /* of the packet: the frame may go on */
	__u8 protocol;
	__u8 has_extensions;
};

/* RFC 7112: a first fragment holds all headers. One with more of them than anybody has use for is taken for an evasion. */
static __noinline int find_last_header(struct __sk_buff *skb, struct l2_last_header *last)
{
	for (int i = 0; i <= L2_EXTENSION_HEADERS; i++) {
		__u8 header[4]; /* next header, length, offset of a fragment */

		if (last->protocol != IPPROTO_HOPOPTS && last->protocol != IPPROTO_ROUTING && last->protocol != IPPROTO_DSTOPTS &&
		    last->protocol != IPPROTO_FRAGMENT && last->protocol != IPPROTO_AH)
			return last->at > last->end ? L2_DROP_MALFORMED : 0;
		if (i == L2_EXTENSION_HEADERS || last->at + sizeof(header) > last->end ||
		    bpf_skb_load_bytes(skb, last->at, header, sizeof(header)))
			break;
		last->has_extensions = 1;
		if (last->protocol == IPPROTO_FRAGMENT) {
			if (header[2] || header[3] & 0xf8)
				return 0;
			last->at += 8;
		} else if (last->protocol == IPPROTO_AH) {
			last->at += (header[1] + 2) * 4;
		} else {
			last->at += (header[1] + 1) * 8;
		}
		last->protocol = header[0];
	}
	return L2_DROP_MALFORMED;
}

/*
 * ff02::1, ff02::16 and those of solicited nodes, ff02::1:ff00:0/104. Routers, ff02::2, are no part of it: a host repeats its solicitation as
 * long as none of them answers (RFC 7559).
 */
static __always_inline int is_own_group(const __be32 address[4])
{
	if (address[0] != bpf_htonl(0xff020000) || address[1])
		return 0;
	if (!address[2])
		return address[3] == bpf_htonl(1) || address[3] == bpf_htonl(0x16);
	return address[2] == bpf_htonl(1) && (address[3] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
}

static __noinline int find_icmpv6_problem(struct __sk_buff *skb, const struct ipv6hdr *ip, const struct l2_last_header *last,
					  const struct l2_binding *binding, struct l2_frame *frame)
{
	__u8 type;

	if (last->at >= last->end || bpf_skb_load_bytes(skb, last->at, &type, sizeof(type)))
		return L2_DROP_MALFORMED;
	if (!is_nd(type)) /* RFC 3590: listeners report before their address is known to be theirs */
		return is_unspecified(frame->source) && type != MLD_REPORT && type != MLDV2_REPORT ? L2_DROP_FORGED_ADDRESS : 0;
	if (last->has_extensions)
		return L2_DROP_ND_EXTENSIONS;
	if (ip->hop_limit != ND_HOP_LIMIT)
		return L2_DROP_MALFORMED;
	if (is_unspecified(frame->source) && type != ND_SOLICITATION && type != ND_ROUTER_SOLICITATION)
		return L2_DROP_FORGED_ADDRESS;
	return find_nd_problem(skb, ND_AT + bpf_ntohs(ip->payload_len), binding, frame);
}

static __noinline int find_ipv6_problem(struct __sk_buff *skb, const struct l2_binding *binding, struct l2_frame *frame)
{
	struct l2_last_header last = {};
	struct ipv6hdr ip;
	__be16 ports[2];

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.version != 6 ||
	    bpf_ntohs(ip.payload_len) + ND_AT > skb->len)
		return L2_DROP_MALFORMED;
	__builtin_memcpy(frame->source, &ip.saddr, sizeof(frame->source));
	last.at = ND_AT;
	last.protocol = ip.nexthdr;
	last.end = ND_AT + bpf_ntohs(ip.payload_len);
	if (find_last_header(skb, &last))
		return L2_DROP_MALFORMED;
	if (is_ipv6_group_mac(frame->ethernet.h_dest) && is_own_group(ip.daddr.in6_u.u6_addr32))
		frame->kind = L2_OWN_GROUP;
	if (last.protocol == IPPROTO_UDP) {
		if (load_ports(skb, last.at, last.end, ports))
			return L2_DROP_MALFORMED;
		if (is_dhcp_reply(ports, DHCPV6_SERVER, DHCPV6_CLIENT) && !(binding->flags & L2_PORT_TRUSTED))
			return L2_DROP_DHCP_REPLY;
	}
	if (is_unspecified(frame->source)) {
		if (last.protocol != IPPROTO_ICMPV6)
			return L2_DROP_FORGED_ADDRESS;
	} else if (!(binding->flags & L2_PORT_FORWARDS) && !is_own_address(binding, frame->source)) {
		return L2_DROP_FORGED_ADDRESS;
	}
	return last.protocol == IPPROTO_ICMPV6 ? find_icmpv6_problem(skb, &ip, &last, binding, frame) : 0;
}
