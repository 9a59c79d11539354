/* The yardstick: what C with libbpf needs for the endpoint map. Prints microseconds per entry: batch single list */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ENTRIES = 10000 };

struct key {
	__u32 prefixlen, address;
};

struct value {
	__u32 remote, vni, ifindex, flags, protocol;
};

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

int main(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, create, .map_flags = BPF_F_NO_PREALLOC);
	LIBBPF_OPTS(bpf_map_batch_opts, batch);
	struct key *keys = calloc(ENTRIES + 1, sizeof(*keys)), cursor;
	struct value *values = calloc(ENTRIES + 1, sizeof(*values));
	int map = bpf_map_create(BPF_MAP_TYPE_LPM_TRIE, "ref", sizeof(*keys), sizeof(*values), 16384, &create);
	double start, times[3];
	__u32 count = ENTRIES;

	if (map < 0 || !keys || !values)
		return 1;
	for (int i = 0; i < ENTRIES; i++) {
		keys[i] = (struct key){ 24, htonl(0x64400000u + ((__u32)i << 8)) };
		values[i] = (struct value){ 0xc0000207, 1, 12, 3, 2 };
	}
	start = now();
	if (bpf_map_update_batch(map, keys, values, &count, &batch))
		return 1;
	times[0] = now() - start;
	start = now();
	for (int i = 0; i < ENTRIES; i++)
		if (bpf_map_update_elem(map, &keys[i], &values[i], 0))
			return 1;
	times[1] = now() - start;
	count = ENTRIES + 1;
	start = now();
	bpf_map_lookup_batch(map, NULL, &cursor, keys, values, &count, &batch);
	times[2] = now() - start;
	printf("%f %f %f\n", times[0] / ENTRIES, times[1] / ENTRIES, times[2] / ENTRIES);
	return count == ENTRIES ? 0 : 1;
}
