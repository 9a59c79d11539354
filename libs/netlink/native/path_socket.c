#define _GNU_SOURCE
#include "path_socket.h"
#include "in_netns.h"
#include "path_filter.h"
#include "path_record.h"
#include "path_send.h"
#include "reader.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LONGEST_PACKET = 60 + sizeof(struct udphdr) + LONGEST_PAYLOAD,
	RECEIVE_BUFFER = 1 << 20,
	/* AF41, as the kernel's WireGuard marks its handshakes. Also: cards join only packets of equal marks, and data that is
	 * joined with a probe would hide it from the filter. */
	TRAFFIC_CLASS = 0x88,
};

struct path_socket {
	struct reader reader;
	int route; /* IPv4: a UDP socket that is asked for the source address towards a destination */
	bool is_v4;
	uint32_t magic;
};

static const napi_type_tag PATH_TAG = { 0x7061746870726f62ULL, 0x756e626f756e6465ULL };

static void on_close(struct reader *reader)
{
	const struct path_socket *sock = (struct path_socket *)reader;

	if (sock->route >= 0)
		close(sock->route);
}

/* The address that a datagram came to, from the control message that IPV6_RECVPKTINFO brings. */
static bool local_v6(struct msghdr *message, uint8_t *local)
{
	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control)) {
		struct in6_pktinfo info;

		if (control->cmsg_level != IPPROTO_IPV6 || control->cmsg_type != IPV6_PKTINFO)
			continue;
		memcpy(&info, CMSG_DATA(control), sizeof(info));
		memcpy(local, &info.ipi6_addr, 16);
		return true;
	}
	return false;
}

/* Writes one record. Returns its size, 0 when what was read is to be passed over. */
static size_t write_record(struct path_socket *sock, struct msghdr *message, size_t got, uint8_t *record)
{
	const uint8_t *packet = message->msg_iov->iov_base;
	const struct sockaddr_in6 *from = message->msg_name;
	uint8_t local[16];

	if (sock->is_v4)
		return path_record_v4(packet, got, record);
	return local_v6(message, local) ? path_record_v6(packet, got, from->sin6_addr.s6_addr, local, record) : 0;
}

static size_t drain(struct reader *reader)
{
	struct path_socket *sock = (struct path_socket *)reader;
	uint8_t packet[LONGEST_PACKET], control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	size_t used = 0;

	for (int reads = 0; reads < READER_MOST_READS && READER_BATCH - used >= LONGEST_RECORD; reads++) {
		struct sockaddr_in6 from = { 0 };
		struct iovec part = { .iov_base = packet, .iov_len = sizeof(packet) };
		struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1,
					  .msg_control = control, .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(reader->fd, &message, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break; /* empty; errors of the network are told by what is not answered */
		if (!(message.msg_flags & MSG_TRUNC))
			used += write_record(sock, &message, (size_t)got, reader->buffer + used);
	}
	return used;
}

/* libuv stopped watching for a pending error, which is read here and so is gone. */
static bool recovers(struct reader *reader)
{
	int error;
	socklen_t size = sizeof(error);

	getsockopt(reader->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return true;
}

static int configure(int fd, bool is_v4)
{
	int checksum_at = 6, on = 1, traffic_class = TRAFFIC_CLASS, buffer = RECEIVE_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (is_v4)
		return setsockopt(fd, IPPROTO_IP, IP_TOS, &traffic_class, sizeof(traffic_class)) ? -errno : 0;
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_CHECKSUM, &checksum_at, sizeof(checksum_at)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &traffic_class, sizeof(traffic_class)))
		return -errno;
	return 0;
}

struct path_request {
	bool is_v4;
	uint32_t magic;
	int route;
};

static int new_path_socket(void *argument)
{
	struct path_request *request = argument;
	int family = request->is_v4 ? AF_INET : AF_INET6;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
	int error;

	if (fd < 0)
		return -errno;
	error = attach_path_filter(fd, request->is_v4, request->magic, NULL, 0); /* first of all: a raw socket takes every UDP packet */
	if (!error)
		error = configure(fd, request->is_v4);
	if (!error && request->is_v4) {
		request->route = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		error = request->route < 0 ? -errno : 0;
	}
	if (!error)
		return fd;
	close(fd);
	return error;
}

/* Takes over the descriptors, also when it fails: NULL with a pending exception. */
static struct path_socket *on_loop(napi_env env, int fd, struct path_request request, napi_value callback)
{
	struct path_socket *sock = calloc(1, sizeof(*sock));

	if (!sock) {
		close(fd);
		if (request.route >= 0)
			close(request.route);
		throw_errno(env, ENOMEM, "watch raw UDP socket");
		return NULL;
	}
	sock->reader.fd = fd;
	sock->reader.drain = drain;
	sock->reader.recovers = recovers;
	sock->reader.on_close = on_close;
	sock->route = request.route;
	sock->is_v4 = request.is_v4;
	sock->magic = request.magic;
	return start_reader(env, &sock->reader, "watch raw UDP socket", callback) ? sock : NULL;
}

napi_value open_path_socket(napi_env env, napi_callback_info info)
{
	struct path_request request = { .route = -1 };
	napi_value args[4];
	int64_t family, netns_fd, magic;
	struct path_socket *sock;
	int fd;

	if (!take_args(env, info, 4, args) || !int_arg(env, args[0], "family", 4, 6, &family) ||
	    !int_arg(env, args[1], "netnsFd", -1, INT_MAX, &netns_fd) ||
	    !int_arg(env, args[2], "magic", 0, UINT32_MAX, &magic) || !function_arg(env, args[3], "callback"))
		return NULL;
	request.is_v4 = family == 4;
	request.magic = (uint32_t)magic;
	fd = in_netns((int)netns_fd, new_path_socket, &request);
	if (fd < 0)
		return throw_errno(env, -fd, "open raw UDP socket");
	sock = on_loop(env, fd, request, args[3]);
	return sock ? reader_handle(env, &sock->reader, &PATH_TAG) : NULL;
}

static struct path_socket *path_arg(napi_env env, napi_value value, bool may_be_closed)
{
	return (struct path_socket *)reader_arg(env, value, &PATH_TAG, "openPathSocket", may_be_closed);
}

napi_value set_path_ports(napi_env env, napi_callback_info info)
{
	struct path_socket *sock;
	napi_value args[2];
	uint8_t *ports;
	size_t length;
	int error;

	if (!take_args(env, info, 2, args) || !(sock = path_arg(env, args[0], false)) ||
	    !bytes_arg(env, args[1], "ports", &ports, &length))
		return NULL;
	error = attach_path_filter(sock->reader.fd, sock->is_v4, sock->magic, ports, length / 2);
	return error ? throw_errno(env, -error, "filter by ports") : NULL;
}

napi_value send_path_probe(napi_env env, napi_callback_info info)
{
	uint8_t datagram[sizeof(struct udphdr) + LONGEST_PAYLOAD] = { 0 };
	size_t to_length, from_length, ports_length, length, address;
	struct path_socket *sock;
	struct path_probe probe;
	uint8_t *to, *from, *ports, *payload;
	napi_value args[5], result;

	if (!take_args(env, info, 5, args) || !(sock = path_arg(env, args[0], false)) ||
	    !bytes_arg(env, args[1], "to", &to, &to_length) || !bytes_arg(env, args[2], "from", &from, &from_length) ||
	    !bytes_arg(env, args[3], "ports", &ports, &ports_length) ||
	    !bytes_arg(env, args[4], "payload", &payload, &length))
		return NULL;
	address = sock->is_v4 ? 4 : 16;
	if (to_length != address || (from_length && from_length != address) || ports_length != 4 || length > LONGEST_PAYLOAD) {
		napi_throw_range_error(env, "ERR_OUT_OF_RANGE",
				       "to and from must be addresses of the socket's family, ports two, the payload at most 2048 bytes");
		return NULL;
	}
	probe = (struct path_probe){ .to = to, .from = from_length ? from : NULL, .datagram = datagram,
				     .length = sizeof(struct udphdr) + length };
	memcpy(datagram, ports, 4);
	datagram[4] = (uint8_t)(probe.length >> 8);
	datagram[5] = (uint8_t)probe.length;
	memcpy(datagram + sizeof(struct udphdr), payload, length);
	napi_create_int32(env, sock->is_v4 ? send_probe_v4(sock->reader.fd, sock->route, &probe) : send_probe_v6(sock->reader.fd, &probe),
			  &result);
	return result;
}

napi_value close_path_socket(napi_env env, napi_callback_info info)
{
	struct path_socket *sock;
	napi_value args[1];

	if (take_args(env, info, 1, args) && (sock = path_arg(env, args[0], true)))
		end_reader(&sock->reader);
	return NULL;
}
