/* memmem */
#define _GNU_SOURCE
#include "request_layout.h"

#include <stdint.h>
#include <string.h>

static void put_u32(unsigned char *at, size_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(value >> (8 * i));
}

size_t put_environment(unsigned char *buffer, size_t size, char *const *variables)
{
	size_t at = REQUEST_HEADER;

	if (size <= at)
		return 0;
	for (char *const *variable = variables; *variable; variable++) {
		size_t length = strlen(*variable) + 1;

		if (strncmp(*variable, "CNI_", 4))
			continue;
		if (length >= size - at) /* with the NUL behind the last */
			return 0;
		memcpy(buffer + at, *variable, length);
		at += length;
	}
	buffer[at] = 0;
	return at + 1;
}

void put_header(unsigned char *buffer, size_t config, size_t end)
{
	put_u32(buffer, config - 1 - REQUEST_HEADER);
	put_u32(buffer + 4, end - config);
}

void find_version(const unsigned char *config, size_t length, char version[VERSION_SIZE])
{
	static const char name[] = "\"cniVersion\"";
	const unsigned char *end = config + length, *at = memmem(config, length, name, sizeof(name) - 1);
	size_t n = 0;

	strcpy(version, "1.0.0");
	if (!at)
		return;
	for (at += sizeof(name) - 1; at < end && *at && strchr(" \t\r\n:\"", *at); at++)
		;
	while (at + n < end && n < VERSION_SIZE - 1 && at[n] && strchr("0123456789.", at[n]))
		n++;
	if (!n)
		return;
	memcpy(version, at, n);
	version[n] = 0;
}
