/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * The data path's programs in user space, under AddressSanitizer. Input:
 *
 *      0  u8   program: 0 encap, 1 encap_l3, 2 tunnel_ingress, 3 tunnel_ingress_l3; its upper bits: HAS_ECHO, BRINGS
 *      1  u8   the packet's protocol: 0 IPv4, 1 IPv6, 2 another (modulo 3); its upper bits: HAS_LOCALS, …
 *      2  u8   what there is: bits of HAS_…
 *      3  16   outer source of the sender
 *     19  32   the endpoint that the lookup finds
 *     51  37   members of the group, repeated; then
 *     88  …    the packet
 */
#include <assert.h>
#include <linux/if_ether.h>

#include "unbounded_encap.bpf.c"

enum { HAS_ENDPOINT = 1, HAS_GROUP = 2, HAS_FORWARDER = 4, HAS_CONFIG = 8, HAS_KEY = 16, HAS_KEY_V6 = 32, ANY_SOURCE = 64, HAS_MAC = 128 };
/* Of the second byte. The kernel takes no tunnel key with a local address, or none at all. */
enum { HAS_LOCALS = 128, REFUSES_LOCAL = 64, REFUSES_KEY = 32 };
/* Of the first byte: the packet's source is the address of the node's echoes; the forwarder brings echoes alone. */
enum { HAS_ECHO = 128, BRINGS = 64 };
enum { AT_SENDER = 3, AT_ENDPOINT = 19, AT_GROUP = 51, GROUP_BYTES = 37, AT_PACKET = 88 };

struct run run;
static uint8_t *endpoint, *group, *forwarder, *config, *locals, *echo;
static uint64_t counters[STAT_COUNT];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void *find_entry(const void *map, const void *key)
{
	uint32_t index;

	if (map == &unbounded_endpoints_v4 || map == &unbounded_endpoints_v6)
		return endpoint;
	if (map == &unbounded_nexthop_groups)
		return group;
	if (map == &unbounded_forwarders)
		return forwarder;
	if (map == &unbounded_config)
		return config;
	if (map == &unbounded_locals)
		return locals;
	if (map == &unbounded_echo)
		return echo;
	assert(map == &unbounded_stats);
	memcpy(&index, key, sizeof(index));
	assert(index < STAT_COUNT);
	return &counters[index];
}

static uint8_t *copy_of(int there, const void *bytes, size_t size)
{
	uint8_t *copy = there ? malloc(size) : NULL;

	if (copy)
		memcpy(copy, bytes, size);
	return copy;
}

/* Members of any content but a weight of 0: what is divided by it is 0 in BPF and undefined in C. */
static uint8_t *make_group(int there, const uint8_t *bytes)
{
	struct nexthop_group made = { .count = bytes[0] };
	uint8_t *raw = (uint8_t *)made.members;

	for (size_t i = 0; i < sizeof(made.members); i++)
		raw[i] = bytes[1 + i % (GROUP_BYTES - 1)] + (uint8_t)(i / (GROUP_BYTES - 1));
	for (int i = 0; i < GROUP_MEMBERS; i++)
		made.members[i].weight |= 1;
	return copy_of(there, &made, sizeof(made));
}

/* The addresses of echoes are the source of the packet, if it has one there. */
static uint8_t *make_echo(int there, uint32_t source_at)
{
	struct echo_addresses own = { 0 };

	bpf_skb_load_bytes(NULL, source_at + offsetof(struct iphdr, saddr), &own.ipv4, sizeof(own.ipv4));
	bpf_skb_load_bytes(NULL, source_at + offsetof(struct ipv6hdr, saddr), own.ipv6, sizeof(own.ipv6));
	return copy_of(there, &own, sizeof(own));
}

static void set_up(const uint8_t *data, size_t size, struct __sk_buff *skb)
{
	static const uint16_t protocols[] = { ETH_P_IP, ETH_P_IPV6, ETH_P_ARP };
	int is_v6 = data[1] % 3 == 1, has = data[2];
	struct encap_config settings = { .own_mac = { has & HAS_MAC ? 2 : 0 }, .flags = has & ANY_SOURCE ? CONFIG_ANY_SOURCE : 0 };

	memset(counters, 0, sizeof(counters));
	run = (struct run){ .length = (uint32_t)(size - AT_PACKET), .has_key = has & HAS_KEY, .key_is_ipv6 = !!(has & HAS_KEY_V6) };
	run.longest_key = data[1] & REFUSES_KEY ? 0 : data[1] & REFUSES_LOCAL ? offsetof(struct bpf_tunnel_key, local_ipv4) : sizeof(struct bpf_tunnel_key);
	run.packet = malloc(run.length);
	memcpy(run.packet, data + AT_PACKET, run.length);
	memcpy(run.sender, data + AT_SENDER, sizeof(run.sender));
	endpoint = copy_of(has & HAS_ENDPOINT, data + AT_ENDPOINT, is_v6 ? sizeof(struct endpoint_v6) : sizeof(struct endpoint_v4));
	group = make_group(has & HAS_GROUP, data + AT_GROUP);
	forwarder = copy_of(has & HAS_FORWARDER, data[0] & BRINGS ? "\2\0\0" : "\1\0\0", 4);
	echo = make_echo(data[0] & HAS_ECHO, data[0] % 2 ? 0 : ETH_HLEN);
	locals = copy_of(data[1] & HAS_LOCALS, data + AT_SENDER, sizeof(struct local_addresses));
	config = copy_of(has & HAS_CONFIG, &settings, sizeof(settings));
	*skb = (struct __sk_buff){ .len = run.length, .protocol = bpf_htons(protocols[data[1] % 3]), .pkt_type = PACKET_OTHERHOST };
}

static uint64_t sum(unsigned int from, unsigned int to)
{
	uint64_t total = 0;

	while (from <= to)
		total += counters[from++];
	return total;
}

static int is_whole(const uint8_t *data, size_t length, size_t offset)
{
	size_t header = data[1] % 3 ? 40 : 20;

	return data[1] % 3 != 2 && length >= offset + header;
}

/* What leaves by a device was whole, IP, and found an endpoint; what does not is counted once, as a drop. */
static void check_sent(const uint8_t *data, size_t length, int action, size_t offset)
{
	if (action == TC_ACT_SHOT) {
		assert(run.redirects == 0 && sum(STAT_DROP_NO_ENDPOINT, STAT_DROP_KEY) == 1 && sum(0, STAT_COUNT - 1) == 1);
		return;
	}
	assert(action == TC_ACT_REDIRECT && run.redirects == 1);
	assert(endpoint && is_whole(data, length, offset));
	assert(run.written_keys <= 1 && (!(data[1] & REFUSES_KEY) || !run.written_keys));
	assert(sum(STAT_REDIRECTED_GENEVE, STAT_REDIRECTED_WIREGUARD) <= 1 && sum(STAT_DROP_NO_ENDPOINT, STAT_COUNT - 1) == 0);
}

/* What goes on to the stack was IP of a known sender, unless every source is taken. */
static void check_received(const uint8_t *data, size_t length, int action, const struct __sk_buff *skb)
{
	assert(run.redirects == 0 && sum(0, STAT_COUNT - 1) == 1);
	if (action == TC_ACT_SHOT) {
		assert(counters[STAT_RECEIVED] == 0);
		return;
	}
	assert(action == TC_ACT_UNSPEC && counters[STAT_RECEIVED] == 1 && skb->pkt_type == PACKET_HOST);
	if (config && data[2] & ANY_SOURCE)
		return;
	assert(endpoint || (echo && forwarder && forwarder[0] == BRINGS_ECHOES));
	assert(run.has_key && data[1] % 3 != 2 && length >= 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const programs[])(struct __sk_buff *) = { unbounded_encap, unbounded_encap_l3, unbounded_tunnel_ingress,
							      unbounded_tunnel_ingress_l3 };
	struct __sk_buff skb;
	size_t length;
	int action;

	if (size < AT_PACKET)
		return 0;
	set_up(data, size, &skb);
	length = run.length;
	action = programs[data[0] % 4](&skb);
	if (data[0] % 4 < 2)
		check_sent(data, length, action, data[0] % 4 ? 0 : ETH_HLEN);
	else
		check_received(data, length, action, &skb);
	free(run.packet);
	free(endpoint);
	free(group);
	free(forwarder);
	free(config);
	free(locals);
	free(echo);
	return 0;
}
