#include "answer_layout.h"

#include <string.h>

/* What is left to be read. */
struct cursor {
	const unsigned char *at, *end;
};

/* Returns the next bytes, or NULL where there are not as many. */
static const unsigned char *take(struct cursor *cursor, size_t length)
{
	const unsigned char *at = cursor->at;

	if ((size_t)(cursor->end - at) < length)
		return NULL;
	cursor->at += length;
	return at;
}

/* Returns the next byte, or -1 where there is none. */
static int take_byte(struct cursor *cursor)
{
	const unsigned char *at = take(cursor, 1);

	return at ? *at : -1;
}

static int is_zero(const unsigned char *bytes, size_t length)
{
	while (length)
		if (bytes[--length])
			return 0;
	return 1;
}

/* Printable ASCII only: the name stands in the JSON of an error too. */
static int take_name(struct cursor *cursor, char name[NAME_SIZE])
{
	const unsigned char *bytes = take(cursor, NAME_SIZE);
	size_t length = 0;

	if (!bytes)
		return -1;
	/* As dev_valid_name() of the kernel: a name is a file name of /proc/sys, too. */
	while (length < NAME_SIZE && bytes[length] > ' ' && bytes[length] < 0x7f && bytes[length] != '/')
		length++;
	if (!length || length == NAME_SIZE || !is_zero(bytes + length, NAME_SIZE - length))
		return -1;
	memcpy(name, bytes, NAME_SIZE);
	return strcmp(name, ".") && strcmp(name, "..") ? 0 : -1;
}

static int take_address(struct cursor *cursor, struct pod_address *address)
{
	int family = take_byte(cursor), prefix_length = take_byte(cursor);
	const unsigned char *bytes = take(cursor, ADDRESS_SIZE);

	if (!bytes || (family != 4 && family != 6) || prefix_length > (family == 4 ? 32 : 128))
		return -1;
	if (family == 4 && !is_zero(bytes + 4, ADDRESS_SIZE - 4))
		return -1;
	address->family = (unsigned char)family;
	address->prefix_length = (unsigned char)prefix_length;
	memcpy(address->bytes, bytes, ADDRESS_SIZE);
	return 0;
}

static int take_interface(struct cursor *cursor, struct pod_interface *interface)
{
	int count;

	if (take_name(cursor, interface->name))
		return -1;
	count = take_byte(cursor);
	if (count < 0 || count > MOST_ADDRESSES)
		return -1;
	interface->address_count = (size_t)count;
	for (int i = 0; i < count; i++)
		if (take_address(cursor, &interface->addresses[i]))
			return -1;
	return 0;
}

static int take_interfaces(struct cursor *cursor, struct answer *answer)
{
	int count = take_byte(cursor);

	if (count < 1 || count > MOST_INTERFACES)
		return -1;
	answer->interface_count = (size_t)count;
	for (int i = 0; i < count; i++)
		if (take_interface(cursor, &answer->interfaces[i]))
			return -1;
	return 0;
}

int parse_answer(const unsigned char *bytes, size_t length, struct answer *answer)
{
	struct cursor cursor = {bytes, bytes + length};

	answer->interface_count = 0;
	answer->exit_code = take_byte(&cursor);
	if (answer->exit_code == SETTLE_MARK) {
		if (take_interfaces(&cursor, answer))
			return -1;
		answer->exit_code = take_byte(&cursor);
		/* A pod that is refused gets no interfaces. */
		if (answer->exit_code)
			return -1;
	}
	answer->output = cursor.at;
	answer->output_length = (size_t)(cursor.end - cursor.at);
	return answer->exit_code < 0 ? -1 : 0;
}
