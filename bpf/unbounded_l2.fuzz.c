/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The programs of stretched L2 in user space, under AddressSanitizer. Input:
 *
 *      0  u8   program: 0 port, 1 receive (modulo 2); its upper bits: HAS_…
 *      1  u8   which maps have an entry: bits of FINDS_…; the record of a tunnel goes with the flood, its group with the buckets
 *      2  u8   flags of the port, and of the FDB entry; its upper half: of the network
 *      3  u8   ifindex of the FDB entry; flags of the record of a tunnel
 *      4  …    the packet
 */
#include <assert.h>
#include <linux/if_ether.h>

#define NO_KERNEL_TYPES
#include "unbounded_l2.bpf.c"

enum { FINDS_PORT = 1, FINDS_NETWORK = 2, FINDS_ADDRESS = 4, FINDS_FDB = 8, FINDS_NEIGHBOR = 16, FINDS_SEGMENT = 32, FINDS_FLOOD = 64,
       FINDS_BUCKETS = 128 };
/* Of the first byte. The frame comes from the port's MAC, the packet is of the node that the FDB has; there is no configuration. */
enum { IS_OWN = 128, NO_CONFIG = 64, IS_SUPERPACKET = 32 };
enum { AT_PACKET = 4, DEVICE = 9, OWN_PORT = 7, TUNNEL = 11 };

struct run run;
static struct l2_port port;
static struct l2_network network;
static struct l2_fdb_entry entry;
static struct l2_neighbor neighbor;
static struct l2_flood flood;
static struct l2_buckets buckets;
static struct l2_config config;
static struct endpoint_v6 endpoint;
static struct nexthop_group group;
static uint32_t present;
static uint8_t finds;
static uint64_t counters[L2_REASON_COUNT];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *find(int bit, void *there)
{
	return finds & bit ? there : NULL;
}

void *find_entry(const void *map, const void *key)
{
	uint32_t index;

	if (map == &unbounded_l2_ports)
		return find(FINDS_PORT, &port);
	if (map == &unbounded_l2_networks)
		return find(FINDS_NETWORK, &network);
	if (map == &unbounded_l2_addresses)
		return find(FINDS_ADDRESS, &present);
	if (map == &unbounded_l2_fdb)
		return find(FINDS_FDB, &entry);
	if (map == &unbounded_l2_neighbors)
		return find(FINDS_NEIGHBOR, &neighbor);
	if (map == &unbounded_l2_segments)
		return find(FINDS_SEGMENT, &present);
	if (map == &unbounded_l2_flood)
		return find(FINDS_FLOOD, &flood);
	if (map == &unbounded_l2_buckets)
		return find(FINDS_BUCKETS, &buckets);
	if (map == &unbounded_l2_config)
		return &config;
	if (map == &unbounded_l2_counters || map == &unbounded_config || map == &unbounded_locals || map == &unbounded_stats)
		return NULL;
	if (map == &unbounded_endpoints_v6)
		return find(FINDS_FLOOD, &endpoint);
	if (map == &unbounded_nexthop_groups)
		return find(FINDS_BUCKETS, &group);
	assert(map == &unbounded_l2_totals);
	memcpy(&index, key, sizeof(index));
	assert(index < L2_REASON_COUNT);
	return &counters[index];
}

static void set_up(const uint8_t *data, size_t size, struct __sk_buff *skb)
{
	__be16 type = 0;

	memset(counters, 0, sizeof(counters));
	run = (struct run){ .length = (uint32_t)(size - AT_PACKET) };
	run.packet = malloc(run.length);
	memcpy(run.packet, data + AT_PACKET, run.length);
	finds = data[1];
	endpoint = (struct endpoint_v6){ .ifindex = TUNNEL, .flags = data[3] & (HOP_SET_KEY | HOP_GROUP | HOP_IPV6_UNDERLAY), .protocol = data[2] % 6 };
	group = (struct nexthop_group){ .count = data[3] % 3 };
	for (int i = 0; i < GROUP_MEMBERS; i++)
		group.members[i] = (struct group_member){ .ifindex = TUNNEL, .flags = HOP_SET_KEY | HOP_HEALTHY, .protocol = data[2] % 6, .weight = 1 };
	config = (struct l2_config){ .locator = { 1, 2 }, .ifindex = data[0] & NO_CONFIG ? 0 : DEVICE };
	network = (struct l2_network){ .flags = data[2] >> 4, .mtu = 1280 };
	port = (struct l2_port){ .network = 3, .segment = 4, .flags = data[2] & 0xf, .rate = 10, .burst = 1 };
	entry = (struct l2_fdb_entry){ .ifindex = data[3], .segment = 4 + data[3] % 2, .locator = { 5, 6 }, .flags = data[2] & 0xf };
	neighbor = (struct l2_neighbor){ .mac = { 2, 0, 0, 0, 0, 1 }, .flags = data[3] };
	flood = (struct l2_flood){ .port_count = data[3], .node_count = data[3], .ports = { 1, OWN_PORT, 3 } };
	buckets = (struct l2_buckets){ 0 };
	bpf_skb_load_bytes(NULL, offsetof(struct ethhdr, h_proto), &type, sizeof(type));
	if (data[0] & IS_OWN && run.length >= ETH_HLEN)
		memcpy(port.mac, run.packet + 6, 6);
	if (data[0] & IS_OWN && data[0] % 2 && run.length >= 38)
		memcpy(entry.locator, run.packet + ETH_HLEN + offsetof(struct ipv6hdr, saddr), 8);
	if (data[0] & IS_OWN && data[0] % 2 && run.length >= 54)
		memcpy(config.locator, run.packet + ETH_HLEN + offsetof(struct ipv6hdr, daddr), 8);
	if (data[0] & IS_OWN && data[0] % 2 && run.length >= sizeof(struct l2_outer) + ETH_HLEN)
		memcpy(neighbor.mac, run.packet + sizeof(struct l2_outer) + 6, 6);
	*skb = (struct __sk_buff){ .len = run.length, .protocol = type, .ifindex = OWN_PORT, .gso_size = data[0] & IS_SUPERPACKET };
}

static uint64_t sum(unsigned int from, unsigned int to)
{
	uint64_t total = 0;

	while (from <= to)
		total += counters[from++];
	return total;
}

/* Every frame is counted once, and what is counted is what happened. */
static void check(const uint8_t *data, int action)
{
	assert(sum(0, L2_REASON_COUNT - 1) == 1);
	if (action == TC_ACT_REDIRECT) {
		assert(run.redirects == 1 && run.clones == 0 && sum(L2_DROP_NO_PORT, L2_REASON_COUNT - 1) == 0);
		return;
	}
	assert(action == TC_ACT_SHOT && run.redirects == 0);
	if (run.clones)
		assert(finds & FINDS_FLOOD && run.clones <= L2_FLOOD_PORTS + L2_FLOOD_NODES);
	if (data[0] & IS_SUPERPACKET)
		assert(run.clones == 0 && sum(0, L2_ANSWERED_TOO_BIG) == 0);
}

/* What leaves a port has the port's MAC as its source; what it answers goes back to it. */
static void check_port(const uint8_t *data, size_t length, int action)
{
	if (sum(0, L2_ANSWERED_TOO_BIG))
		assert(finds & FINDS_PORT && finds & FINDS_NETWORK && length >= ETH_HLEN && !memcmp(data + AT_PACKET + 6, port.mac, 6));
	if (counters[L2_ANSWERED_ARP] || counters[L2_ANSWERED_ND] || counters[L2_ANSWERED_TOO_BIG])
		assert(run.redirected_to == OWN_PORT && run.length <= 14 + 48 + QUOTE);
	if (counters[L2_ENCAPSULATED])
		assert((run.redirected_to == DEVICE || (run.redirected_to == TUNNEL && finds & FINDS_FLOOD)) &&
		       run.length == length + sizeof(struct l2_outer));
	if (action == TC_ACT_REDIRECT && counters[L2_FORWARDED])
		assert(run.redirected_to != OWN_PORT && run.length == length && length <= 1280 + ETH_HLEN);
	assert(counters[L2_RECEIVED] == 0);
}

/* Whether the inner frame has an IPv4 address as its source, in IPv4 or ARP. */
static int has_ipv4_source(const uint8_t *inner)
{
	int is_arp = inner[12] == 8 && inner[13] == 6;
	static const uint8_t none[4];

	return (is_arp || (inner[12] == 8 && !inner[13])) && memcmp(inner + ETH_HLEN + (is_arp ? 14 : 12), none, sizeof(none));
}

/* What comes from a node came from the one of its source, with an address that the source has, and goes to ports alone. */
static void check_received(const uint8_t *data, size_t length, int action)
{
	assert(!sum(L2_FORWARDED, L2_REPLICATED) && !sum(L2_ANSWERED_ARP, L2_ANSWERED_TOO_BIG));
	if (!counters[L2_RECEIVED])
		return;
	assert(finds & FINDS_NETWORK && finds & FINDS_FDB && !entry.ifindex && length >= sizeof(struct l2_outer) + ETH_HLEN);
	if (length >= sizeof(struct l2_outer) + ETH_HLEN + 20 && has_ipv4_source(data + AT_PACKET + sizeof(struct l2_outer)))
		assert(finds & FINDS_NEIGHBOR || entry.flags & L2_PORT_FORWARDS);
	assert(run.length >= SHORTEST_FRAME && action == TC_ACT_SHOT && run.clones <= L2_FLOOD_PORTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct __sk_buff skb;
	size_t length;
	int action;

	if (size < AT_PACKET)
		return 0;
	set_up(data, size, &skb);
	length = run.length;
	action = data[0] % 2 ? unbounded_l2_receive(&skb) : unbounded_l2_port(&skb);
	check(data, action);
	if (data[0] % 2)
		check_received(data, length, action);
	else
		check_port(data, length, action);
	free(run.packet);
	return 0;
}
