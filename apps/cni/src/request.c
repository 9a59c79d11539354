#include "request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static unsigned char buffer[REQUEST_MAX];

const char *read_request(struct request *request)
{
	size_t config = put_environment(buffer, sizeof(buffer), environ), at = config;

	strcpy(request->cni_version, "1.0.0");
	if (!config)
		return "the CNI_* environment is too long";
	for (;;) {
		ssize_t n = read(STDIN_FILENO, buffer + at, sizeof(buffer) - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return "standard input cannot be read";
		if (!n)
			break;
		at += (size_t)n;
		if (at == sizeof(buffer))
			return "the network configuration is too long";
	}
	put_header(buffer, config, at);
	find_version(buffer + config, at - config, request->cni_version);
	request->bytes = buffer;
	request->length = at;
	return NULL;
}
