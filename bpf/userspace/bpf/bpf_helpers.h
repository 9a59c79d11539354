/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/*
 * Stands in for libbpf's header where a program is compiled for this machine's user space (*.fuzz.c): the same names, and
 * helpers that do what the kernel's do to one packet and to maps of one entry. A helper that a program begins to use is
 * added here.
 */
#pragma once

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SEC(name)
#define __uint(name, value) int (*name)[value]
#define __type(name, value) __typeof__(value) *name
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline, unused))

/* One run of a program. What is allocated has exactly the size that the program may touch. */
struct run {
	uint8_t *packet;
	uint32_t length;
	int has_key, key_is_ipv6;	/* what bpf_skb_get_tunnel_key knows of the sender */
	uint32_t sender[4];
	uint32_t longest_key;		/* bytes of a tunnel key that bpf_skb_set_tunnel_key takes at most */
	int written_keys, redirects, clones;
	uint32_t redirected_to;
};
extern struct run run;

/* The entry of a map for a key, or NULL. */
void *find_entry(const void *map, const void *key);

static inline void *bpf_map_lookup_elem(void *map, const void *key)
{
	return find_entry(map, key);
}

static inline int is_inside(uint32_t offset, uint32_t length)
{
	return offset <= run.length && length <= run.length - offset;
}

static inline long bpf_skb_load_bytes(const struct __sk_buff *skb, uint32_t offset, void *to, uint32_t length)
{
	(void)skb;
	memset(to, 0, length); /* as the kernel does when it fails */
	if (!is_inside(offset, length))
		return -14;
	memcpy(to, run.packet + offset, length);
	return 0;
}

static inline long bpf_skb_store_bytes(struct __sk_buff *skb, uint32_t offset, const void *from, uint32_t length, uint64_t flags)
{
	(void)skb, (void)flags;
	if (!is_inside(offset, length))
		return -14;
	memcpy(run.packet + offset, from, length);
	return 0;
}

static inline uint16_t fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* RFC 1624, eqn. 3, over words in the order of this machine, as the packet has them. */
static inline long replace_checksum(uint32_t offset, uint64_t difference, int may_be_absent)
{
	uint16_t checksum;

	if (!is_inside(offset, sizeof(checksum)))
		return -14;
	memcpy(&checksum, run.packet + offset, sizeof(checksum));
	if (may_be_absent && !checksum)
		return 0;
	checksum = (uint16_t)~fold((uint16_t)~checksum + difference);
	if (may_be_absent && !checksum)
		checksum = 0xffff;
	memcpy(run.packet + offset, &checksum, sizeof(checksum));
	return 0;
}

static inline int64_t bpf_csum_diff(const __be32 *from, uint32_t from_size, const __be32 *to, uint32_t to_size, uint32_t seed)
{
	uint64_t sum = seed;

	for (uint32_t i = 0; i < from_size / 4; i++)
		sum += (uint32_t)~from[i];
	for (uint32_t i = 0; i < to_size / 4; i++)
		sum += to[i];
	return fold(sum);
}

static inline long bpf_l3_csum_replace(struct __sk_buff *skb, uint32_t offset, uint64_t from, uint64_t to, uint64_t size)
{
	(void)skb, (void)size;
	return replace_checksum(offset, (uint64_t)(uint32_t)~from + (uint32_t)to, 0);
}

/* With a difference in the place of what is new, and nothing in that of what is old. */
static inline long bpf_l4_csum_replace(struct __sk_buff *skb, uint32_t offset, uint64_t from, uint64_t difference, uint64_t flags)
{
	(void)skb, (void)from;
	return replace_checksum(offset, (uint32_t)difference, !!(flags & BPF_F_MARK_MANGLED_0));
}

static inline long bpf_skb_change_head(struct __sk_buff *skb, uint32_t length, uint64_t flags)
{
	uint8_t *grown = calloc(1, run.length + length);

	(void)flags;
	memcpy(grown + length, run.packet, run.length);
	free(run.packet);
	run.packet = grown;
	run.length += length;
	skb->len = run.length;
	return 0;
}

/* Longer ones end in zeros. */
static inline long bpf_skb_change_tail(struct __sk_buff *skb, uint32_t length, uint64_t flags)
{
	uint8_t *other = calloc(1, length);

	(void)flags;
	memcpy(other, run.packet, length < run.length ? length : run.length);
	free(run.packet);
	run.packet = other;
	run.length = length;
	skb->len = length;
	return 0;
}

/* Takes bytes out behind the Ethernet header; the kernel leaves at least an IP header. */
static inline long bpf_skb_adjust_room(struct __sk_buff *skb, int32_t difference, uint32_t mode, uint64_t flags)
{
	uint32_t less = (uint32_t)-difference;

	(void)mode, (void)flags;
	if (difference >= 0 || run.length < 14 + 20 + less)
		return -22;
	memmove(run.packet + 14, run.packet + 14 + less, run.length - 14 - less);
	run.length -= less;
	run.packet = realloc(run.packet, run.length);
	skb->len = run.length;
	return 0;
}

static inline long bpf_clone_redirect(struct __sk_buff *skb, uint32_t ifindex, uint64_t flags)
{
	(void)skb, (void)ifindex, (void)flags;
	run.clones++;
	return 0;
}

/* A nanosecond later each time. */
static inline uint64_t bpf_ktime_get_ns(void)
{
	static uint64_t now = 1;

	return now++;
}

static inline long bpf_skb_change_type(struct __sk_buff *skb, uint32_t type)
{
	skb->pkt_type = type;
	return 0;
}

static inline long bpf_skb_get_tunnel_key(struct __sk_buff *skb, struct bpf_tunnel_key *key, uint32_t size, uint64_t flags)
{
	(void)skb, (void)size;
	memset(key, 0, sizeof(*key));
	if (!run.has_key || !(flags & BPF_F_TUNINFO_IPV6) != !run.key_is_ipv6)
		return -22;
	if (run.key_is_ipv6)
		memcpy(key->remote_ipv6, run.sender, sizeof(key->remote_ipv6));
	else
		key->remote_ipv4 = run.sender[0];
	return 0;
}

static inline long bpf_skb_set_tunnel_key(struct __sk_buff *skb, struct bpf_tunnel_key *key, uint32_t size, uint64_t flags)
{
	uint8_t copy[sizeof(*key)];

	(void)skb, (void)flags;
	if (size > run.longest_key)
		return -22;
	memcpy(copy, key, size);
	run.written_keys++;
	return 0;
}

static inline long bpf_redirect(uint32_t ifindex, uint64_t flags)
{
	(void)flags;
	run.redirects++;
	run.redirected_to = ifindex;
	return 7; /* TC_ACT_REDIRECT */
}
