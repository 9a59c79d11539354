#define _GNU_SOURCE
/* Packets of anybody at the raw UDP socket. Input: a byte of which the lowest bit is the family, then the packet. */
#include "path_record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const uint8_t *packet, size_t length, const uint8_t *record, size_t written)
{
	size_t payload = (size_t)record[0] << 8 | record[1];

	assert(written % 4 == 0 && written <= LONGEST_RECORD);
	assert(written == RECORD_HEADER + ((payload + 3) & ~(size_t)3));
	/* The payload is the packet's own bytes. */
	assert(!payload || memmem(packet, length, record + RECORD_HEADER, payload));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t from[16] = { 0x20, 1 }, local[16] = { 0x20, 2 };
	uint8_t *packet, *record;
	size_t written;

	if (!size)
		return 0;
	/* Of exactly their sizes, so that AddressSanitizer sees the first byte too many. */
	packet = malloc(size - 1);
	record = malloc(LONGEST_RECORD);
	memcpy(packet, data + 1, size - 1);
	written = data[0] & 1 ? path_record_v6(packet, size - 1, from, local, record) : path_record_v4(packet, size - 1, record);
	if (written)
		check_record(packet, size - 1, record, written);
	free(record);
	free(packet);
	return 0;
}
