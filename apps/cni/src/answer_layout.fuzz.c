/* What answers on the agent's socket. Input: the answer. */
#include "answer_layout.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_interface(const struct settle_interface *interface)
{
	assert(interface->name[0] && strlen(interface->name) < SETTLE_NAME && interface->count <= SETTLE_ADDRESSES);
	for (int i = 0; i < interface->count; i++) {
		const struct settle_address *address = &interface->addresses[i];

		assert(address->family == 4 ? address->length <= 32 : address->family == 6 && address->length <= 128);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *copy = malloc(size ? size : 1); /* exact, so that a byte too far is seen */
	struct settle settle;
	ssize_t at;

	memcpy(copy, data, size);
	at = read_settle(copy, size, &settle);
	assert(at < (ssize_t)size);
	if (at >= 0)
		assert(at ? settle.count >= 1 && settle.count <= SETTLE_INTERFACES : !settle.count);
	for (int i = 0; at > 0 && i < settle.count; i++)
		check_interface(&settle.interfaces[i]);
	free(copy);
	return 0;
}
