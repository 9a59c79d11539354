/*
 * splice PORT - the limit for a relay of one thread: bytes of a connection go to another as they come.
 *
 * A connection says by its first frame which key it has, as a relay's client does (Register: u32be 33, 0x01, key), and by
 * the head of its first Data frame (u32be length, 0x02, key) to whom it sends. From then on nothing is parsed or changed:
 * read up to 64 KiB, write them to the other connection, and when that one is full, read no more until it has room. A
 * relay has to find each frame and put the sender's key into it; what it lacks of this program's messages per second is
 * the price of that.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHUNK 65536
#define REGISTER 37 /* length, type, key */
#define MAX_FD 65536

struct peer {
	int open;
	size_t head; /* bytes of the Register and of the first Data head that are there */
	unsigned char first[2 * REGISTER];
	int to;	     /* where its bytes go; -1: not known yet */
	int blocked; /* descriptor that waits until this one has room; -1: none */
	char *left;  /* what could not be written to `to` */
	size_t left_at, left_end;
};

static struct peer peers[MAX_FD];
static char chunk[CHUNK];
static int poll_fd;

static void watch(int op, int fd, unsigned events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	if (epoll_ctl(poll_fd, op, fd, &event)) {
		perror("splice: epoll_ctl");
		exit(1);
	}
}

static void forget(int fd)
{
	struct peer *peer = &peers[fd];

	if (!peer->open)
		return;
	free(peer->left);
	memset(peer, 0, sizeof(*peer));
	close(fd);
}

static int find(const unsigned char *key)
{
	for (int fd = 0; fd < MAX_FD; fd++)
		if (peers[fd].open && peers[fd].head >= REGISTER && !memcmp(peers[fd].first + 5, key, 32))
			return fd;
	return -1;
}

/* Writes what `from` has read; what does not fit is kept and `from` is read no further. */
static void pass(int from, const char *bytes, size_t length)
{
	struct peer *peer = &peers[from];
	ssize_t sent;

	if (peer->to < 0 || !peers[peer->to].open)
		return;
	sent = send(peer->to, bytes, length, MSG_NOSIGNAL);
	if (sent < 0)
		sent = 0;
	if ((size_t)sent == length)
		return;
	if (!peer->left)
		peer->left = malloc(CHUNK);
	memcpy(peer->left, bytes + sent, length - sent);
	peer->left_at = 0;
	peer->left_end = length - sent;
	peers[peer->to].blocked = from;
	watch(EPOLL_CTL_MOD, from, 0);
	watch(EPOLL_CTL_MOD, peer->to, EPOLLIN | EPOLLOUT);
}

static void on_room(int fd)
{
	int from = peers[fd].blocked;
	struct peer *peer;
	ssize_t sent;

	watch(EPOLL_CTL_MOD, fd, EPOLLIN);
	peers[fd].blocked = -1;
	if (from < 0 || !peers[from].open || peers[from].to != fd)
		return;
	peer = &peers[from];
	sent = send(fd, peer->left + peer->left_at, peer->left_end - peer->left_at, MSG_NOSIGNAL);
	if (sent > 0)
		peer->left_at += sent;
	if (peer->left_at < peer->left_end) {
		peers[fd].blocked = from;
		watch(EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLOUT);
		return;
	}
	watch(EPOLL_CTL_MOD, from, EPOLLIN);
}

static void on_bytes(int fd)
{
	struct peer *peer = &peers[fd];
	ssize_t length = recv(fd, chunk, CHUNK, 0);
	char *at = chunk;

	if (length < 0 && errno == EAGAIN)
		return;
	if (length <= 0)
		return forget(fd);
	/* The head is kept, to be read; that of the first Data frame is passed on as well. */
	while (length > 0 && peer->head < REGISTER) {
		peer->first[peer->head++] = *at++;
		length--;
	}
	if (length > 0 && peer->to < 0) {
		size_t want = 2 * REGISTER - peer->head;
		size_t part = (size_t)length < want ? (size_t)length : want;

		memcpy(peer->first + peer->head, at, part);
		peer->head += part;
		at += part;
		length -= part;
		if (peer->head < 2 * REGISTER)
			return;
		peer->to = find(peer->first + REGISTER + 5);
		memcpy(peer->first + REGISTER + 5, peer->first + 5, 32);
		memmove(chunk + REGISTER, at, length);
		memcpy(chunk, peer->first + REGISTER, REGISTER);
		at = chunk;
		length += REGISTER;
	}
	if (length > 0)
		pass(fd, at, length);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct epoll_event events[256];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;

	if (argc != 2) {
		fprintf(stderr, "usage: splice PORT\n");
		return 2;
	}
	address.sin_port = htons(atoi(argv[1]));
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1024)) {
		perror("splice: listen");
		return 1;
	}
	poll_fd = epoll_create1(0);
	watch(EPOLL_CTL_ADD, listener, EPOLLIN);
	for (;;) {
		int count = epoll_wait(poll_fd, events, 256, -1);

		for (int index = 0; index < count; index++) {
			int fd = events[index].data.fd;

			if (fd == listener) {
				int client = accept4(listener, NULL, NULL, SOCK_NONBLOCK);

				if (client < 0 || client >= MAX_FD)
					continue;
				setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				peers[client] = (struct peer){.open = 1, .to = -1, .blocked = -1};
				watch(EPOLL_CTL_ADD, client, EPOLLIN);
				continue;
			}
			if (peers[fd].open && events[index].events & EPOLLOUT)
				on_room(fd);
			if (peers[fd].open && events[index].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
				on_bytes(fd);
		}
	}
}
