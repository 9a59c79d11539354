/* What the runtime gave us, as the agent wants it: see README.md for the layout. */
#pragma once

#include "request_layout.h"

/* Longest request that is taken, bytes; the agent's limit too. */
#define REQUEST_MAX (2u << 20)

struct request {
	unsigned char *bytes;
	size_t length;
	/* The configuration's cniVersion, for messages; a default when it has none. */
	char cni_version[VERSION_SIZE];
};

/* Reads the environment and standard input. Returns 0, or a message that says what is wrong. */
const char *read_request(struct request *request);
