/* Sends UDP datagrams through a raw socket. */
#ifndef UNBOUNDED_NETLINK_PATH_SEND_H
#define UNBOUNDED_NETLINK_PATH_SEND_H

#include <stddef.h>
#include <stdint.h>

struct path_probe {
	const uint8_t *to;
	const uint8_t *from; /* NULL: the kernel's choice */
	uint8_t *datagram; /* with UDP's header; the checksum is filled in */
	size_t length;
};

/* 0 or errno. route is a UDP socket of the same namespace: IPv4's checksum needs the source before the packet has one. */
int send_probe_v4(int fd, int route, const struct path_probe *probe);
/* The kernel fills in the checksum (IPV6_CHECKSUM). */
int send_probe_v6(int fd, const struct path_probe *probe);

#endif
