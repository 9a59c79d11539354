#include "records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD_HEADER = 8, ALIGNMENT = 8 };

int add_record(struct records *records, const void *data, size_t size)
{
	uint32_t length = (uint32_t)size, zero = 0;
	size_t padded, need;
	uint8_t *at;

	if (size > UINT32_MAX - ALIGNMENT)
		return -EMSGSIZE;
	padded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	need = records->used + RECORD_HEADER + padded;
	if (need > records->capacity) {
		uint8_t *grown = realloc(records->bytes, need * 2);

		if (!grown)
			return -ENOMEM;
		records->bytes = grown;
		records->capacity = need * 2;
	}
	at = records->bytes + records->used;
	memcpy(at, &length, sizeof(length));
	memcpy(at + 4, &zero, sizeof(zero));
	if (size)
		memcpy(at + RECORD_HEADER, data, size);
	memset(at + RECORD_HEADER + size, 0, padded - size);
	records->used = need;
	return 0;
}
