/* A program with one of each kind of map, for the tests of libbpf-ts. */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 100);
} hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, 4);
} array SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 2);
} per_cpu SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} ring SEC(".maps");

volatile const __u32 answer = 1;
volatile const __u8 small = 2;

/* Returns the constants' sum, counts the run, and sends it to the ring buffer. */
SEC("tc") int first(struct __sk_buff *skb)
{
	__u32 zero = 0, length = skb->len;
	__u32 *count = bpf_map_lookup_elem(&per_cpu, &zero);

	if (count)
		*count += 1;
	bpf_ringbuf_output(&ring, &length, sizeof(length), 0);
	return (int)(answer + small);
}

SEC("tc") int second(struct __sk_buff *skb)
{
	return skb->len ? 0 : 2;
}

/* Reads past what was checked: the verifier refuses it. Loaded only when it is asked for. */
SEC("?tc") int refused(struct __sk_buff *skb)
{
	__u8 *data = (void *)(long)skb->data;

	return data[100];
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
