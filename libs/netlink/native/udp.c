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

struct target {
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} address;
	socklen_t length;
};

static bool parse(const char *text, uint16_t port, struct target *target)
{
	memset(target, 0, sizeof(*target));
	if (inet_pton(AF_INET, text, &target->address.v4.sin_addr) == 1) {
		target->address.v4.sin_family = AF_INET;
		target->address.v4.sin_port = htons(port);
		target->length = sizeof(target->address.v4);
		return true;
	}
	target->address.v6.sin6_family = AF_INET6;
	target->address.v6.sin6_port = htons(port);
	target->length = sizeof(target->address.v6);
	return inet_pton(AF_INET6, text, &target->address.v6.sin6_addr) == 1;
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

static int new_udp(void *argument)
{
	const struct target *target = argument;
	int family = target->address.any.sa_family;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	error = set_options(fd, family);
	if (!error && bind(fd, &target->address.any, target->length))
		error = -errno;
	if (!error)
		return fd;
	close(fd);
	return error;
}

napi_value open_udp(napi_env env, napi_callback_info info)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct target target;
	napi_value args[3], result;
	int64_t port, netns_fd;
	int fd;

	if (!take_args(env, info, 3, args) || !string_arg(env, args[0], "address", text, sizeof(text)) ||
	    !int_arg(env, args[1], "port", 0, 65535, &port) || !int_arg(env, args[2], "netnsFd", -1, INT_MAX, &netns_fd))
		return NULL;
	if (!parse(text, (uint16_t)port, &target)) {
		napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", "address must be an IPv4 or IPv6 address");
		return NULL;
	}
	fd = in_netns((int)netns_fd, new_udp, &target);
	if (fd < 0)
		return throw_errno(env, -fd, "open UDP socket");
	napi_create_int32(env, fd, &result);
	return result;
}
