#include "path_record.h"

#include <string.h>

enum { IPV4_HEADER = 20, UDP_HEADER = 8 };

/* The record but for its addresses. udp: UDP's header and what follows it. */
static size_t put_datagram(const uint8_t *udp, size_t room, uint8_t *record)
{
	size_t length;

	if (room < UDP_HEADER)
		return 0;
	length = (size_t)udp[4] << 8 | udp[5];
	if (length < UDP_HEADER || length > room || length - UDP_HEADER > LONGEST_PAYLOAD)
		return 0;
	length -= UDP_HEADER;
	record[0] = (uint8_t)(length >> 8);
	record[1] = (uint8_t)length;
	memcpy(record + 2, udp, 4);
	memset(record + 6, 0, RECORD_HEADER - 6);
	memcpy(record + RECORD_HEADER, udp + UDP_HEADER, length);
	memset(record + RECORD_HEADER + length, 0, -length & 3);
	return RECORD_HEADER + ((length + 3) & ~(size_t)3);
}

size_t path_record_v4(const uint8_t *packet, size_t length, uint8_t *record)
{
	size_t header = length ? 4 * (packet[0] & 15u) : 0, size;

	if (header < IPV4_HEADER || length < header)
		return 0;
	size = put_datagram(packet + header, length - header, record);
	if (size) {
		memcpy(record + 8, packet + 12, 4);
		memcpy(record + 24, packet + 16, 4);
	}
	return size;
}

size_t path_record_v6(const uint8_t *packet, size_t length, const uint8_t *from, const uint8_t *local, uint8_t *record)
{
	size_t size = put_datagram(packet, length, record);

	if (size) {
		memcpy(record + 8, from, 16);
		memcpy(record + 24, local, 16);
	}
	return size;
}
