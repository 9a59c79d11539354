/* Records of a ring buffer, packed one after another (ring.h has the layout). */
#ifndef LIBBPF_TS_RECORDS_H
#define LIBBPF_TS_RECORDS_H

#include <stddef.h>
#include <stdint.h>

struct records {
	uint8_t *bytes; /* malloc's; grows */
	size_t used, capacity;
};

/* 0 or -errno: -EMSGSIZE for a length that its u32 cannot hold, -ENOMEM. After an error nothing has changed. */
int add_record(struct records *records, const void *data, size_t size);

#endif
