/* The bytes of a request, without reading or writing any: see README.md for the layout. */
#pragma once

#include <stddef.h>

/* Bytes before the environment. */
#define REQUEST_HEADER 8
/* The longest cniVersion that is repeated, with its NUL. */
#define VERSION_SIZE 16

/*
 * Writes the CNI_* of the variables ("NAME=value", NULL ends them) behind the header, and a NUL behind the last. Returns
 * where the configuration begins, or 0 when they do not fit.
 */
size_t put_environment(unsigned char *buffer, size_t size, char *const *variables);

/* Fills in the header of a request whose configuration is from `config` to `end`. */
void put_header(unsigned char *buffer, size_t config, size_t end);

/* The value of "cniVersion": a plain scan, since it decides nothing but the version that an error message carries. */
void find_version(const unsigned char *config, size_t length, char version[VERSION_SIZE]);
