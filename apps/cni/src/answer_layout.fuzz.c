/* What an agent (of another version perhaps) answers. Input: the answer. */
#include "answer_layout.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t put_interface(unsigned char *at, const struct pod_interface *interface)
{
	size_t length = NAME_SIZE;

	memcpy(at, interface->name, NAME_SIZE);
	at[length++] = (unsigned char)interface->address_count;
	for (size_t i = 0; i < interface->address_count; i++) {
		const struct pod_address *address = &interface->addresses[i];

		at[length++] = address->family;
		at[length++] = address->prefix_length;
		memcpy(at + length, address->bytes, ADDRESS_SIZE);
		length += ADDRESS_SIZE;
	}
	return length;
}

/* What precedes the output, written anew: nothing else may have been accepted. */
static size_t put_start(unsigned char *start, const struct answer *answer)
{
	size_t length = 0;

	if (answer->interface_count) {
		start[length++] = SETTLE_MARK;
		start[length++] = (unsigned char)answer->interface_count;
		for (size_t i = 0; i < answer->interface_count; i++)
			length += put_interface(start + length, &answer->interfaces[i]);
	}
	start[length++] = (unsigned char)answer->exit_code;
	return length;
}

static void check_interface(const struct pod_interface *interface)
{
	size_t length = strnlen(interface->name, NAME_SIZE);

	assert(length > 0 && length < NAME_SIZE);
	for (size_t i = 0; i < length; i++)
		assert(interface->name[i] > ' ' && interface->name[i] < 0x7f);
	assert(interface->address_count <= MOST_ADDRESSES);
	for (size_t i = 0; i < interface->address_count; i++) {
		const struct pod_address *address = &interface->addresses[i];

		assert(address->family == 4 || address->family == 6);
		assert(address->prefix_length <= (address->family == 4 ? 32 : 128));
	}
}

static void check_answer(const unsigned char *bytes, size_t size, const struct answer *answer)
{
	unsigned char start[3 + MOST_INTERFACES * (NAME_SIZE + 1 + MOST_ADDRESSES * (2 + ADDRESS_SIZE))];
	size_t length;

	assert(answer->interface_count <= MOST_INTERFACES);
	for (size_t i = 0; i < answer->interface_count; i++)
		check_interface(&answer->interfaces[i]);
	assert(!answer->interface_count || !answer->exit_code);
	length = put_start(start, answer);
	assert(answer->output == bytes + length && answer->output_length == size - length);
	assert(!memcmp(start, bytes, length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Exact copies: a byte read beyond either is found. */
	struct answer *answer = malloc(sizeof(*answer));
	unsigned char *bytes = malloc(size);
	int is_answer;

	memcpy(bytes, data, size);
	is_answer = !parse_answer(bytes, size, answer);
	if (is_answer)
		check_answer(bytes, size, answer);
	else
		assert(!size || bytes[0] == SETTLE_MARK);
	free(bytes);
	free(answer);
	return 0;
}
