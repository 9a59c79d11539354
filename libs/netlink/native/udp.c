#define _GNU_SOURCE
#include "udp.h"
#include "in_netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	socklen_t length;
	/* 0: as the kernel has it. */
	int send_buffer;
	bool shares_port;
};

static bool parse(const char *text, uint16_t port, struct request *request)
{
	memset(request, 0, sizeof(*request));
	if (inet_pton(AF_INET, text, &request->address.v4.sin_addr) == 1) {
		request->address.v4.sin_family = AF_INET;
		request->address.v4.sin_port = htons(port);
		request->length = sizeof(request->address.v4);
		return true;
	}
	request->address.v6.sin6_family = AF_INET6;
	request->address.v6.sin6_port = htons(port);
	request->length = sizeof(request->address.v6);
	return inet_pton(AF_INET6, text, &request->address.v6.sin6_addr) == 1;
}

/* The whole datagram or EMSGSIZE, whatever MTU the kernel believes the path to have; the address may come later. */
static int set_options(int fd, int family)
{
	bool is_v4 = family == AF_INET;
	int on = 1, probe = is_v4 ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;

	if (!is_v4 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)))
		return -errno;
	if (setsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_FREEBIND : IPV6_FREEBIND, &on, sizeof(on)))
		return -errno;
	if (setsockopt(fd, is_v4 ? IPPROTO_IP : IPPROTO_IPV6, is_v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &probe,
		       sizeof(probe)))
		return -errno;
	return 0;
}

/*
 * Beyond net.core.wmem_max too; it is a limit, and nothing is allocated for it. In a user namespace of its own nobody may do that: there it
 * is as much as the system allows.
 */
static int set_send_buffer(int fd, int bytes)
{
	if (!setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		return 0;
	if (errno != EPERM)
		return -errno;
	return setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) ? -errno : 0;
}

static int set_sharing(int fd)
{
	int on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ? -errno : 0;
}

static int new_udp(void *argument)
{
	const struct request *request = argument;
	int family = request->address.any.sa_family;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	error = set_options(fd, family);
	if (!error && request->send_buffer > 0)
		error = set_send_buffer(fd, request->send_buffer);
	if (!error && request->shares_port)
		error = set_sharing(fd);
	if (!error && bind(fd, &request->address.any, request->length))
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

napi_value open_udp(napi_env env, napi_callback_info info)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct request request;
	napi_value args[5], result;
	int64_t port, netns_fd, send_buffer;
	bool shares_port;
	int fd;

	if (!take_args(env, info, 5, args) || !string_arg(env, args[0], "address", text, sizeof(text)) ||
	    !int_arg(env, args[1], "port", 0, 65535, &port) ||
	    !int_arg(env, args[2], "netnsFd", -1, INT_MAX, &netns_fd) ||
	    !int_arg(env, args[3], "sendBufferBytes", 0, INT_MAX / 2, &send_buffer) ||
	    !bool_arg(env, args[4], "sharesPort", &shares_port))
		return NULL;
	if (!parse(text, (uint16_t)port, &request)) {
		napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", "address must be an IPv4 or IPv6 address");
		return NULL;
	}
	request.send_buffer = (int)send_buffer;
	request.shares_port = shares_port;
	fd = in_netns((int)netns_fd, new_udp, &request);
	if (fd < 0)
		return throw_errno(env, -fd, "open UDP socket");
	napi_create_int32(env, fd, &result);
	return result;
}
