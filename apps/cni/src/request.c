/* memmem */
#define _GNU_SOURCE
#include "request.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER 8

extern char **environ;

static unsigned char buffer[REQUEST_MAX];

static void put_u32(unsigned char *at, uint32_t value)
{
	for (int i = 0; i < 4; i++)
		at[i] = value >> (8 * i);
}

/* Appends the CNI_* variables. Returns the new length, or 0 when they do not fit. */
static size_t add_environment(size_t at)
{
	for (char **variable = environ; *variable; variable++) {
		size_t length = strlen(*variable) + 1;

		if (strncmp(*variable, "CNI_", 4))
			continue;
		if (at + length + 1 > sizeof(buffer))
			return 0;
		memcpy(buffer + at, *variable, length);
		at += length;
	}
	return at;
}

/* The value of "cniVersion": a plain scan, since it decides nothing but the version that an error message carries. */
static void find_version(struct request *request, const unsigned char *config, size_t length)
{
	static const char name[] = "\"cniVersion\"";
	const unsigned char *end = config + length, *at = memmem(config, length, name, sizeof(name) - 1);
	size_t n = 0;

	strcpy(request->cni_version, "1.0.0");
	if (!at)
		return;
	for (at += sizeof(name) - 1; at < end && strchr(" \t\r\n:\"", *at); at++)
		;
	while (at + n < end && n < sizeof(request->cni_version) - 1 && strchr("0123456789.", at[n]) && at[n])
		n++;
	if (!n)
		return;
	memcpy(request->cni_version, at, n);
	request->cni_version[n] = 0;
}

const char *read_request(struct request *request)
{
	size_t environment = add_environment(HEADER), at;

	strcpy(request->cni_version, "1.0.0");
	if (!environment)
		return "the CNI_* environment is too long";
	buffer[environment] = 0;
	at = environment + 1;
	for (;;) {
		ssize_t n = read(STDIN_FILENO, buffer + at, sizeof(buffer) - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return "standard input cannot be read";
		if (!n)
			break;
		at += n;
		if (at == sizeof(buffer))
			return "the network configuration is too long";
	}
	put_u32(buffer, environment - HEADER);
	put_u32(buffer + 4, at - environment - 1);
	find_version(request, buffer + environment + 1, at - environment - 1);
	request->bytes = buffer;
	request->length = at;
	return NULL;
}
