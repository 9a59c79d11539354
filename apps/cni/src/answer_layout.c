#include "answer_layout.h"

#include <string.h>

struct reader {
	const unsigned char *at;
	const unsigned char *end;
};

static int take(struct reader *reader, void *to, size_t size)
{
	if ((size_t)(reader->end - reader->at) < size)
		return -1;
	memcpy(to, reader->at, size);
	reader->at += size;
	return 0;
}

static int take_address(struct reader *reader, struct settle_address *address)
{
	if (take(reader, &address->family, 1) || take(reader, &address->length, 1) ||
	    take(reader, address->bytes, sizeof(address->bytes)))
		return -1;
	if (address->family == 4)
		return address->length <= 32 ? 0 : -1;
	return address->family == 6 && address->length <= 128 ? 0 : -1;
}

static int take_interface(struct reader *reader, struct settle_interface *interface)
{
	if (take(reader, interface->name, sizeof(interface->name)) || !interface->name[0] ||
	    !memchr(interface->name, 0, sizeof(interface->name)))
		return -1;
	if (take(reader, &interface->count, 1) || interface->count > SETTLE_ADDRESSES)
		return -1;
	for (int i = 0; i < interface->count; i++)
		if (take_address(reader, &interface->addresses[i]))
			return -1;
	return 0;
}

ssize_t read_settle(const unsigned char *answer, size_t length, struct settle *settle)
{
	struct reader reader = {answer, answer + length};

	memset(settle, 0, sizeof(*settle));
	if (!length)
		return -1;
	if (answer[0] != SETTLE_MARK)
		return 0;
	reader.at++;
	if (take(&reader, &settle->count, 1) || !settle->count || settle->count > SETTLE_INTERFACES)
		return -1;
	for (int i = 0; i < settle->count; i++)
		if (take_interface(&reader, &settle->interfaces[i]))
			return -1;
	return reader.at < reader.end ? reader.at - answer : -1;
}
