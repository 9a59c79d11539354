/* Records of a ring buffer. Input: a byte for each record's length (four times that many bytes), its bytes from the rest. */
#include "records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t length_at(const uint8_t *data, size_t size, size_t index)
{
	size_t want = (size_t)data[index] * 4 + data[index] % 4, left = size - index - 1;

	return want < left ? want : left;
}

/* Reads the packing as TypeScript does (ring-buffer.ts): every record comes back as it was. */
static void check(const struct records *records, const uint8_t *data, size_t size, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		size_t length = length_at(data, size, i);
		uint32_t head[2];

		assert(at + 8 <= records->used);
		memcpy(head, records->bytes + at, sizeof(head));
		assert(head[0] == length && head[1] == 0);
		assert(!length || !memcmp(records->bytes + at + 8, data + i + 1, length));
		at += 8 + ((length + 7) & ~(size_t)7);
	}
	assert(at == records->used && at <= records->capacity);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct records records = { .bytes = malloc(1), .capacity = 1 };

	for (size_t i = 0; i < size; i++) {
		size_t length = length_at(data, size, i);
		uint8_t *record = malloc(length);

		memcpy(record, data + i + 1, length);
		assert(!add_record(&records, record, length));
		free(record);
	}
	check(&records, data, size, size);
	free(records.bytes);
	return 0;
}
