/* The bytes of the agent's answer, without doing anything that it wants: see README.md for the layout. */
#pragma once

#include <stddef.h>

/* Begins an answer with interfaces: no exit code. */
#define SETTLE_MARK 0xff
#define MOST_INTERFACES 16
#define MOST_ADDRESSES 16
/* With its NUL: IFNAMSIZ. */
#define NAME_SIZE 16
#define ADDRESS_SIZE 16

struct pod_address {
	/* 4 or 6 */
	unsigned char family;
	unsigned char prefix_length;
	/* In network order; of IPv4 the first four. */
	unsigned char bytes[ADDRESS_SIZE];
};

/* To be given its addresses and set up. */
struct pod_interface {
	char name[NAME_SIZE];
	size_t address_count;
	struct pod_address addresses[MOST_ADDRESSES];
};

struct answer {
	size_t interface_count;
	struct pod_interface interfaces[MOST_INTERFACES];
	int exit_code;
	/* Standard output: within the bytes that were parsed. */
	const unsigned char *output;
	size_t output_length;
};

/* Returns 0, or -1 for bytes that are no answer; then nothing in it means anything. */
int parse_answer(const unsigned char *bytes, size_t length, struct answer *answer);
