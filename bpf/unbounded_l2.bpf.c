/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Stretched L2: one LAN over many nodes without a bridge between them. unbounded_l2_port, at the tc ingress of a port (the host side of
 * a pod's veth), lets the pod speak for itself alone, answers ARP and neighbor discovery from the Neighbor map, and sends frames by the
 * FDB: to a port of this node, or in SRv6 to the node of the destination (include/l2_encap.h). There the own locator is routed to a
 * device at whose tc egress unbounded_l2_receive takes the frame out again.
 *
 * What is not sent on is dropped and counted: a device of ours never hands a frame to the stack.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#ifndef NO_KERNEL_TYPES
#include "include/checksum_place.h"
#else
/* A kernel that does not show them: frames are taken as they are. */
#define has_forged_checksum_place(skb) 0
#endif
#include "include/l2_arp.h"
#include "include/l2_encap.h"
#include "include/l2_frame.h"
#include "include/l2_ip.h"
#include "include/l2_maps.h"
#include "include/l2_nd.h"
#include "include/l2_reasons.h"
#include "include/l2_receive.h"
#include "include/l2_replicate.h"
#include "include/l2_source.h"
#include "include/l2_too_big.h"
#include "include/l2_tunnel.h"

static __always_inline int find_port_problem(struct __sk_buff *skb, const struct l2_port *port, struct l2_frame *frame)
{
	struct l2_binding binding = { .ifindex = skb->ifindex, .network = port->network, .flags = port->flags };

	__builtin_memcpy(binding.mac, port->mac, sizeof(binding.mac));
	return find_source_problem(skb, &binding, frame);
}

static __always_inline int redirect(__u32 ifindex, __u32 reason)
{
	l2_count(ifindex, reason);
	return bpf_redirect(ifindex, 0);
}

/* The action for a request that is answered here or must not be answered; -1 when it is to be asked of others. */
static __noinline int answer_request(struct __sk_buff *skb, struct l2_port *port, struct l2_frame *frame)
{
	__u32 ifindex = skb->ifindex;
	struct l2_neighbor *neighbor;
	int is_arp = frame->ethernet.h_proto == bpf_htons(ETH_P_ARP);
	int problem;

	if (is_address_of_port(ifindex, frame->target))
		return l2_drop(skb, L2_DROP_OWN_PROBE);
	neighbor = find_neighbor(port->network, frame->target);
	if (!neighbor)
		return -1;
	if (is_same_mac(neighbor->mac, port->mac))
		return l2_drop(skb, L2_DROP_OWN_PROBE);
	problem = is_arp ? write_arp_answer(skb, frame, neighbor) : write_nd_answer(skb, frame, neighbor);
	if (problem)
		return l2_drop(skb, problem);
	return redirect(ifindex, is_arp ? L2_ANSWERED_ARP : L2_ANSWERED_ND);
}

static __noinline int send_by_tunnel(struct __sk_buff *skb, struct hop *hop)
{
	__u32 ifindex = skb->ifindex;

	if (write_macs(skb, hop) || set_tunnel_key(skb, hop))
		return l2_drop(skb, L2_DROP_ENCAP);
	l2_count(ifindex, L2_ENCAPSULATED);
	count_redirect(hop->protocol);
	return bpf_redirect(hop->ifindex, 0);
}

static __noinline int send_to_node(struct __sk_buff *skb, struct l2_port *port, struct l2_frame *frame, struct l2_fdb_entry *entry)
{
	__be32 locator[2] = { entry->locator[0], entry->locator[1] };
	struct l2_config *config = l2_config();
	__u32 ifindex = skb->ifindex;
	struct hop hop = {};
	int problem;

	if (!config)
		return l2_drop(skb, L2_DROP_NO_NETWORK);
	problem = push_outer(skb, frame, port->network, SID_DT2U);
	if (!problem)
		problem = write_locator(skb, locator);
	if (problem)
		return l2_drop(skb, problem);
	if (find_tunnel(skb, &hop))
		return send_by_tunnel(skb, &hop);
	l2_count(ifindex, L2_ENCAPSULATED);
	return bpf_redirect(config->ifindex, BPF_F_INGRESS);
}

static __noinline int forward(struct __sk_buff *skb, struct l2_port *port, struct l2_network *network, struct l2_frame *frame)
{
	struct l2_fdb_entry *entry = NULL;
	int problem;

	if (!is_group_mac(frame->ethernet.h_dest))
		entry = find_mac(port->network, frame->ethernet.h_dest);
	if (!entry) {
		problem = find_policy_problem(frame, network->flags);
		return problem ? l2_drop(skb, problem) : replicate(skb, port, frame);
	}
	if (entry->ifindex == skb->ifindex)
		return l2_drop(skb, L2_DROP_SAME_PORT);
	if (!may_reach(port->network, port->segment, entry->segment))
		return l2_drop(skb, L2_DROP_SEGMENT);
	return entry->ifindex ? redirect(entry->ifindex, L2_FORWARDED) : send_to_node(skb, port, frame, entry);
}

/* tc ingress of a port. Returns TC_ACT_REDIRECT or TC_ACT_SHOT. */
SEC("tc")
int unbounded_l2_port(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ifindex;
	struct l2_port *port = bpf_map_lookup_elem(&unbounded_l2_ports, &ifindex);
	struct l2_network *network;
	struct l2_frame frame = {};
	int reason;

	if (!port)
		return l2_drop(skb, L2_DROP_NO_PORT);
	network = bpf_map_lookup_elem(&unbounded_l2_networks, &port->network);
	if (!network)
		return l2_drop(skb, L2_DROP_NO_NETWORK);
	if (bpf_skb_load_bytes(skb, 0, &frame.ethernet, sizeof(frame.ethernet)))
		return l2_drop(skb, L2_DROP_MALFORMED);
	reason = has_forged_checksum_place(skb) ? L2_DROP_MALFORMED : find_frame_problem(skb, &frame.ethernet);
	if (!reason)
		reason = find_port_problem(skb, port, &frame);
	if (reason)
		return l2_drop(skb, reason);
	if (skb->len > network->mtu + ETH_HLEN) {
		reason = answer_too_big(skb, &frame, network->mtu);
		return reason ? l2_drop(skb, reason) : redirect(ifindex, L2_ANSWERED_TOO_BIG);
	}
	if (frame.kind == L2_REQUEST) {
		int action = answer_request(skb, port, &frame);

		if (action >= 0)
			return action;
	}
	return forward(skb, port, network, &frame);
}

/* tc egress of the device to which the own locator is routed. Returns TC_ACT_REDIRECT or TC_ACT_SHOT. */
SEC("tc")
int unbounded_l2_receive(struct __sk_buff *skb)
{
	struct l2_received received = {};
	int reason = read_received(skb, &received);

	if (!reason)
		reason = find_node_problem(&received);
	if (!reason)
		reason = decapsulate(skb, &received);
	if (!reason)
		reason = find_endpoint_problem(skb, &received);
	return reason ? l2_drop(skb, reason) : deliver(skb, &received);
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
