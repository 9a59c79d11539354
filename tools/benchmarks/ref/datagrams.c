/*
 * datagrams ADDRESS PORT COUNT - sends datagrams of 100 bytes as fast as it can, and prints how many nanoseconds one took. Over veth the
 * kernel carries a datagram to its end within the call that sends it: its whole way is measured.
 */
#define _GNU_SOURCE /* sendmmsg */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { BYTES = 100, BATCH = 64 };

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e9 + time.tv_nsec;
}

int main(int argc, char **argv)
{
	static char data[BYTES];
	struct iovec bytes = { .iov_base = data, .iov_len = BYTES };
	struct mmsghdr batch[BATCH] = { 0 };
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_DGRAM }, *to;
	double start;
	long count, sent = 0;
	int fd;

	if (argc != 4 || (count = atol(argv[3])) < 1 || getaddrinfo(argv[1], argv[2], &hints, &to)) {
		fprintf(stderr, "usage: datagrams ADDRESS PORT COUNT\n");
		return 2;
	}
	fd = socket(to->ai_family, SOCK_DGRAM, 0);
	if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen)) {
		perror(argv[1]);
		return 1;
	}
	for (int at = 0; at < BATCH; at++)
		batch[at].msg_hdr = (struct msghdr){ .msg_iov = &bytes, .msg_iovlen = 1 };
	start = now();
	while (sent < count) {
		int some = sendmmsg(fd, batch, BATCH, 0);

		/* The far end may say that nobody listens there. */
		sent += some > 0 ? some : 1;
	}
	printf("%.1f\n", (now() - start) / sent);
	return 0;
}
