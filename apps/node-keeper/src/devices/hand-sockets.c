/*
 * For socket-buffers.kernel.spec.ts: hands a UDP socket and one of TCP to whoever has the other end of file descriptor 4, waits, and prints
 * the bytes that they may hold then: "before after" of each.
 */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFERS_FD = 4 };

static int size_of(int fd)
{
	int bytes = 0;
	socklen_t length = sizeof(bytes);

	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, &length);
	return bytes;
}

enum { MOST = 3 };

/* So many times in one message. */
static int hand(int fd, size_t count)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(MOST * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int)) } };
	struct iovec bytes = { .iov_base = "", .iov_len = 1 };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control,
				  .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	int fds[MOST] = { fd, fd, fd };

	memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
	return sendmsg(BUFFERS_FD, &message, 0) < 0;
}

int main(void)
{
	int types[] = { SOCK_STREAM, SOCK_DGRAM };

	/* Messages without a socket and with too many, first: of something else than one. */
	if (send(BUFFERS_FD, "", 1, 0) < 0 || hand(STDERR_FILENO, 2) || hand(STDERR_FILENO, MOST))
		return 1;
	for (int at = 0; at < 2; at++) {
		int fd = socket(AF_INET, types[at], 0), before = size_of(fd);

		if (fd < 0 || hand(fd, 1))
			return 1;
		/* At most a second; for the one of TCP all of it. */
		for (int look = 0; look < 100 && size_of(fd) == before; look++)
			usleep(at == 0 ? 2000 : 10000);
		printf("%d %d\n", before, size_of(fd));
	}
	fflush(stdout);
	/* Until somebody has looked at who is beside it. */
	return getchar() == EOF;
}
