/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Layouts and maps of stretched L2 networks, which user space writes and the programs read. libs/bpf-maps/src/l2 holds the same
 * layouts for TypeScript; they have a version of their own there (shape.ts). Reserved words are zero.
 *
 * Not here yet, and its name is taken: unbounded_l2_observations, the ring buffer of learning.
 */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* 40 bytes, by the ifindex of the host side of a pod's veth */
struct l2_port {
	__u32 network;
	__u32 segment;
	__u32 flags;
	__u32 rate;		/* copies a second that may be made of frames; 0: none */
	__u32 burst;		/* copies that may be made at once */
	__u8 mac[6];		/* the only source that the port may use */
	__u16 reserved;
	__u32 reserved_words[3];
};
#define L2_PORT_TRUSTED 0x01	/* may send DHCP replies, router advertisements and redirects */
#define L2_PORT_FORWARDS 0x02	/* a router: brings IP packets of others under its own MAC; ARP and ND stay its own */
#define L2_PORT_LEARN 0x04	/* reserved for learning: the port's bindings are seen, not given */

/* 20 bytes. IPv4 addresses are mapped ones, ::ffff:a.b.c.d, here and everywhere. */
struct l2_address_key {
	__u32 ifindex;
	__be32 address[4];
};

/* 16 bytes, by number: the networks that this node hosts */
struct l2_network {
	__u32 flags;
	__u32 mtu;		/* of IP in the frame, at least 1280 */
	__u32 reserved_words[2];
};
/* What is replicated; the rest is dropped. Announcements and IPv6's own groups always are. */
#define L2_NETWORK_UNKNOWN 0x01		/* unicast without an FDB entry */
#define L2_NETWORK_BROADCAST 0x02	/* and requests for addresses without a Neighbor entry */
#define L2_NETWORK_MULTICAST 0x04	/* IPv4's groups, and IPv6's other than its own */

/* 12 bytes */
struct l2_fdb_key {
	__u32 network;
	__u8 mac[6];
	__u16 reserved;
};

/* 32 bytes */
struct l2_fdb_entry {
	__u32 ifindex;		/* of a local port; 0: the endpoint is on the node of locator */
	__u32 segment;
	__be32 locator[2];
	__u64 sequence;		/* RFC 7432 7.7; the programs do not read it */
	__u32 flags;		/* L2_PORT_TRUSTED and L2_PORT_FORWARDS, as at the endpoint's own port: what its frames may be when they come from its node */
	__u32 reserved;
};

/* 20 bytes */
struct l2_neighbor_key {
	__u32 network;
	__be32 address[4];
};

/* 12 bytes */
struct l2_neighbor {
	__u8 mac[6];
	__u16 reserved;
	__u32 flags;
};
#define L2_NEIGHBOR_ROUTER 0x01	/* RFC 4861 4.4: the R flag of advertisements */

/* 12 bytes: segments of a network that may talk; equal ones always may */
struct l2_segment_key {
	__u32 network;
	__u32 from;
	__u32 to;
};

#define L2_FLOOD_PORTS 32
#define L2_FLOOD_NODES 64

/* 656 bytes, by number of the network: to where frames are replicated */
struct l2_flood {
	__u32 port_count;
	__u32 node_count;
	__u32 reserved_words[2];
	__u32 ports[L2_FLOOD_PORTS];
	__be32 locators[L2_FLOOD_NODES][2];
};

/* 32 bytes, by ifindex of the port: times (CLOCK_MONOTONIC, ns) at which its buckets are full again. User space writes zeros. */
struct l2_buckets {
	__u64 replicated;
	__u64 errors;
	__u64 reserved_words[2];
};

/* 32 bytes, one record */
struct l2_config {
	__be32 locator[2];	/* of this node */
	__u32 ifindex;		/* an own Ethernet device: what comes in there, the stack routes */
	__u8 mac[6];		/* of that device */
	__u16 reserved;
	__u32 flags;
	__u32 reserved_words[2];
};

#define L2_HASH(name, key_type, value_type, entries) \
	struct { \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, entries); \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__type(key, key_type); \
		__type(value, value_type); \
	} name SEC(".maps")

L2_HASH(unbounded_l2_ports, __u32, struct l2_port, 1024);
L2_HASH(unbounded_l2_addresses, struct l2_address_key, __u32, 16384);
L2_HASH(unbounded_l2_networks, __u32, struct l2_network, 256);
L2_HASH(unbounded_l2_fdb, struct l2_fdb_key, struct l2_fdb_entry, 65536);
L2_HASH(unbounded_l2_neighbors, struct l2_neighbor_key, struct l2_neighbor, 65536);
L2_HASH(unbounded_l2_segments, struct l2_segment_key, __u32, 4096);
L2_HASH(unbounded_l2_flood, __u32, struct l2_flood, 256);
L2_HASH(unbounded_l2_buckets, __u32, struct l2_buckets, 1024);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct l2_config);
} unbounded_l2_config SEC(".maps");

static __always_inline struct l2_config *l2_config(void)
{
	__u32 zero = 0;
	struct l2_config *config = bpf_map_lookup_elem(&unbounded_l2_config, &zero);

	return config && config->ifindex ? config : NULL;
}
