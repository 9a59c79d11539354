/* The interfaces that an answer may begin with, without reading or writing any: see README.md for the layout. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/* The first byte of an answer that begins with interfaces: no exit code. */
#define SETTLE_MARK 0xff
#define SETTLE_INTERFACES 16
#define SETTLE_ADDRESSES 16
#define SETTLE_NAME 16
#define SETTLE_ADDRESS_BYTES 16

struct settle_address {
	unsigned char family;	/* 4 or 6 */
	unsigned char length;	/* of the prefix, bits */
	unsigned char bytes[SETTLE_ADDRESS_BYTES];	/* IPv4 in the first four */
};

struct settle_interface {
	char name[SETTLE_NAME];	/* with a NUL */
	unsigned char count;
	struct settle_address addresses[SETTLE_ADDRESSES];
};

struct settle {
	unsigned char count;
	struct settle_interface interfaces[SETTLE_INTERFACES];
};

/* Returns where the exit code is, or -1 for an answer that is none. */
ssize_t read_settle(const unsigned char *answer, size_t length, struct settle *settle);
