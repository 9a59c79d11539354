/* What a raw UDP socket read, as a record for JavaScript (path_socket.h has its layout). The bytes come from anybody. */
#ifndef UNBOUNDED_NETLINK_PATH_RECORD_H
#define UNBOUNDED_NETLINK_PATH_RECORD_H

#include <stddef.h>
#include <stdint.h>

enum {
	/* Several probes that the network card joined; nothing longer is a probe. */
	LONGEST_PAYLOAD = 2048,
	RECORD_HEADER = 40,
	/* Room that a record needs. */
	LONGEST_RECORD = RECORD_HEADER + LONGEST_PAYLOAD,
};

/* Both return the record's size, a multiple of 4, or 0 when the packet is no whole datagram that could be probes. */

/* packet begins with IPv4's header. */
size_t path_record_v4(const uint8_t *packet, size_t length, uint8_t *record);
/* packet begins with UDP's header; the addresses have 16 bytes. */
size_t path_record_v6(const uint8_t *packet, size_t length, const uint8_t *from, const uint8_t *local, uint8_t *record);

#endif
