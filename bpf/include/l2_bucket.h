/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* How often something may be: a token bucket in one word, so that processors need no lock. */
#pragma once

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#define NS_PER_S 1000000000ULL
#define BUCKET_ATTEMPTS 4

/*
 * The word is the time at which the bucket is full again; each token puts it off by the interval. Returns 0 when fewer than count of
 * the burst are left, and when other processors were quicker each time: they are many then.
 */
static __noinline int take_tokens(__u64 *full_at, __u64 interval, __u64 burst, __u64 count)
{
	__u64 now = bpf_ktime_get_ns();

	for (int i = 0; i < BUCKET_ATTEMPTS; i++) {
		__u64 seen = *(volatile __u64 *)full_at;
		__u64 from = seen > now ? seen : now;

		if (count > burst || from - now > interval * (burst - count))
			return 0;
		if (__sync_val_compare_and_swap(full_at, seen, from + interval * count) == seen)
			return 1;
	}
	return 0;
}
