/* A parser with a mistake, for the test of the search: 'U', 'B', a count, as many bytes; the count is believed. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy, target[256];

	if (size < 3 || data[0] != 'U' || data[1] != 'B')
		return 0;
	copy = malloc(size);
	memcpy(copy, data, size);
	memcpy(target, copy + 3, copy[2]);
	free(copy);
	/* -1: not worth keeping. */
	return target[0] == 'U' && target[1] == 'B' ? -1 : 0;
}
