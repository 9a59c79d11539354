/*
 * What a runtime (and through it a network configuration) gives the plugin. Input: u16 size of the buffer (0 to 1023 bytes
 * of it), variables that each end with NUL, an empty one, the configuration.
 */
#define _GNU_SOURCE
#include "request_layout.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_VARIABLES = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t u32_at(const unsigned char *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* An exact copy of each variable. Returns what follows them. */
static const uint8_t *take_variables(const uint8_t *at, const uint8_t *end, char **variables)
{
	size_t count = 0;

	while (at < end && count < MOST_VARIABLES) {
		const uint8_t *nul = memchr(at, 0, (size_t)(end - at));
		size_t length = nul ? (size_t)(nul - at) : (size_t)(end - at);

		at += length + (nul ? 1 : 0);
		if (!length)
			break;
		variables[count++] = strndup((const char *)at - length - (nul ? 1 : 0), length);
	}
	variables[count] = NULL;
	return at;
}

static void check_version(const uint8_t *config, size_t length)
{
	unsigned char *copy = malloc(length);
	char version[VERSION_SIZE];

	memcpy(copy, config, length);
	find_version(copy, length, version);
	/* It stands in JSON between quotes: nothing but digits and points may. */
	assert(*version && strspn(version, "0123456789.") == strlen(version));
	free(copy);
}

static void check_request(char *const *variables, size_t room, const uint8_t *config, size_t length)
{
	unsigned char *buffer = malloc(room);
	size_t start = put_environment(buffer, room, variables), at = REQUEST_HEADER;

	if (start) {
		assert(start <= room);
		length = length < room - start ? length : room - start;
		memcpy(buffer + start, config, length);
		put_header(buffer, start, start + length);
		assert(REQUEST_HEADER + u32_at(buffer) + 1 == start && u32_at(buffer + 4) == length);
		for (; *variables; variables++) {
			if (strncmp(*variables, "CNI_", 4))
				continue;
			assert(!strcmp((char *)buffer + at, *variables));
			at += strlen(*variables) + 1;
		}
		assert(at + 1 == start && !buffer[at]);
	}
	free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *variables[MOST_VARIABLES + 1];
	const uint8_t *config;
	size_t length;

	if (size < 2)
		return 0;
	config = take_variables(data + 2, data + size, variables);
	length = (size_t)(data + size - config);
	check_version(config, length);
	check_request(variables, ((size_t)data[0] << 8 | data[1]) % 1024, config, length);
	for (char **variable = variables; *variable; variable++)
		free(*variable);
	return 0;
}
