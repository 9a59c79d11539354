#define _GNU_SOURCE
#include "path_send.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static uint32_t sum_words(const uint8_t *bytes, size_t length, uint32_t sum)
{
	for (; length > 1; length -= 2, bytes += 2)
		sum += (uint32_t)bytes[0] << 8 | bytes[1];
	return length ? sum + ((uint32_t)bytes[0] << 8) : sum;
}

/* RFC 768: over source, destination, protocol, length and the datagram; 0 would mean that there is none. */
static uint16_t udp_checksum(const uint8_t *from, const uint8_t *to, const uint8_t *datagram, size_t length)
{
	uint32_t sum = sum_words(from, 4, sum_words(to, 4, IPPROTO_UDP + (uint32_t)length));

	sum = sum_words(datagram, length, sum);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

/* The source that the kernel takes towards an address. 0 or errno. */
static int find_source(int route, const uint8_t *to, uint8_t *from)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in there = { .sin_family = AF_INET, .sin_port = htons(9) }, here;
	socklen_t size = sizeof(here);

	memcpy(&there.sin_addr, to, 4);
	connect(route, &none, sizeof(none)); /* forgets the source of before */
	if (connect(route, (struct sockaddr *)&there, sizeof(there)) ||
	    getsockname(route, (struct sockaddr *)&here, &size))
		return errno;
	memcpy(from, &here.sin_addr, 4);
	connect(route, &none, sizeof(none));
	return 0;
}

static struct cmsghdr *begin_control(struct msghdr *message, int level, int type, size_t size)
{
	struct cmsghdr *control = CMSG_FIRSTHDR(message);

	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(size);
	message->msg_controllen = CMSG_SPACE(size);
	return control;
}

int send_probe_v4(int fd, int route, const struct path_probe *probe)
{
	struct sockaddr_in there = { .sin_family = AF_INET };
	struct in_pktinfo info = { 0 };
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
	} control = { 0 };
	struct iovec part = { .iov_base = probe->datagram, .iov_len = probe->length };
	struct msghdr message = { .msg_name = &there, .msg_namelen = sizeof(there), .msg_iov = &part, .msg_iovlen = 1,
				  .msg_control = &control, .msg_controllen = sizeof(control) };
	const uint8_t *from = probe->from;
	uint8_t source[4];
	uint16_t sum;

	if (!from) {
		int error = find_source(route, probe->to, source);

		if (error)
			return error;
		from = source;
	}
	sum = htons(udp_checksum(from, probe->to, probe->datagram, probe->length));
	memcpy(probe->datagram + 6, &sum, 2);
	memcpy(&there.sin_addr, probe->to, 4);
	memcpy(&info.ipi_spec_dst, from, 4);
	memcpy(CMSG_DATA(begin_control(&message, IPPROTO_IP, IP_PKTINFO, sizeof(info))), &info, sizeof(info));
	return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? errno : 0;
}

int send_probe_v6(int fd, const struct path_probe *probe)
{
	struct sockaddr_in6 there = { .sin6_family = AF_INET6 };
	struct in6_pktinfo info = { 0 };
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	} control = { 0 };
	struct iovec part = { .iov_base = probe->datagram, .iov_len = probe->length };
	struct msghdr message = { .msg_name = &there, .msg_namelen = sizeof(there), .msg_iov = &part, .msg_iovlen = 1 };

	memcpy(&there.sin6_addr, probe->to, 16);
	if (probe->from) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		memcpy(&info.ipi6_addr, probe->from, 16);
		memcpy(CMSG_DATA(begin_control(&message, IPPROTO_IPV6, IPV6_PKTINFO, sizeof(info))), &info, sizeof(info));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT) < 0 ? errno : 0;
}
