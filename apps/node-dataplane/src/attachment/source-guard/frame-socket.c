/*
 * Frames in hexadecimal, a line each, for tests: `send DEVICE` takes them from standard input and prints `ok` for each,
 * `receive DEVICE` prints those that hold the mark. `@START+OFFSET ` before a frame leaves its checksum to whoever can fill it in, there
 * (linux/virtio_net.h).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Every frame of a test has it: what else passes by would fill the pipe while nobody reads it. */
static const unsigned char mark[] = {0xbe, 0xef, 0xfa, 0xce, 0xd0};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int send_frames(int fd)
{
	static char line[8192];
	static struct {
		struct virtio_net_hdr header;
		unsigned char bytes[sizeof(line) / 2];
	} __attribute__((packed)) frame;
	int on = 1;

	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)))
		return fail("PACKET_VNET_HDR");
	while (fgets(line, sizeof(line), stdin)) {
		size_t length = 0;
		unsigned int byte, start, offset;
		int at = 0;

		memset(&frame.header, 0, sizeof(frame.header));
		if (sscanf(line, "@%u+%u %n", &start, &offset, &at) == 2) {
			frame.header.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
			frame.header.csum_start = start;
			frame.header.csum_offset = offset;
		}
		while (sscanf(line + at + 2 * length, "%2x", &byte) == 1)
			frame.bytes[length++] = byte;
		if (length && send(fd, &frame, sizeof(frame.header) + length, 0) < 0)
			return fail("send");
		usleep(5000); /* what the kernel puts off to ksoftirqd has arrived by then */
		puts("ok");
	}
	return 0;
}

static int receive_frames(int fd)
{
	static unsigned char frame[65536];

	puts("ready");
	for (;;) {
		struct sockaddr_ll from;
		socklen_t size = sizeof(from);
		ssize_t length = recvfrom(fd, frame, sizeof(frame), 0, (struct sockaddr *)&from, &size);

		if (length < 0)
			return fail("recv");
		if (from.sll_pkttype == PACKET_OUTGOING || !memmem(frame, length, mark, sizeof(mark)))
			continue;
		for (ssize_t at = 0; at < length; at++)
			printf("%02x", frame[at]);
		putchar('\n');
	}
}

int main(int count, char **argv)
{
	struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	int is_sender = count == 3 && !strcmp(argv[1], "send");
	int fd = socket(AF_PACKET, SOCK_RAW, is_sender ? 0 : htons(ETH_P_ALL));

	if (fd < 0)
		return fail("socket");
	address.sll_ifindex = count == 3 ? (int)if_nametoindex(argv[2]) : 0;
	if (is_sender)
		address.sll_protocol = 0;
	if (!address.sll_ifindex || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return fail("bind");
	setvbuf(stdout, NULL, _IOLBF, 0);
	return is_sender ? send_frames(fd) : receive_frames(fd);
}
