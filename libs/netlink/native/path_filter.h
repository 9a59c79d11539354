/* The socket filter of path probes. */
#ifndef UNBOUNDED_NETLINK_PATH_FILTER_H
#define UNBOUNDED_NETLINK_PATH_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_PATH_PORTS = 2000 };

/*
 * Passes datagrams to one of the ports (big-endian, two bytes each) whose payload begins with the magic, compared as a
 * big-endian u32; the kernel drops everything else before it is queued. 0 or -errno.
 */
int attach_path_filter(int fd, bool is_v4, uint32_t magic, const uint8_t *ports, size_t count);

#endif
