#define _GNU_SOURCE
#include "socket.h"
#include "in_netns.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#ifndef SIOCGSKNS
#define SIOCGSKNS 0x894C
#endif

enum {
	/* The largest datagram: the kernel fills dumps up to the size of the buffer it saw last, at most 32 KiB. */
	DATAGRAM = 65536,
	/* What one callback may carry. Untouched pages of it cost nothing. */
	BATCH = 1 << 20,
	LARGEST_BUFFER = 1 << 30,
};

struct netlink_socket {
	uv_poll_t poll;
	int fd;
	int references; /* the JavaScript handle and the poll handle: the last one frees */
	bool closing;
	bool wants_write;
	napi_env env;
	napi_ref callback;
	napi_async_context async;
	napi_async_cleanup_hook_handle hook;
	uint8_t *buffer;
};

static const napi_type_tag SOCKET_TAG = { 0x6e65746c696e6b31ULL, 0x756e626f756e6465ULL };

static void on_poll(uv_poll_t *poll, int status, int events);

static void release(struct netlink_socket *sock)
{
	if (--sock->references)
		return;
	free(sock->buffer);
	free(sock);
}

static void on_closed(uv_handle_t *handle)
{
	struct netlink_socket *sock = handle->data;

	close(sock->fd);
	sock->fd = -1;
	/* Only now may the environment go: libuv holds the memory no longer. */
	napi_remove_async_cleanup_hook(sock->hook);
	release(sock);
}

static void begin_close(struct netlink_socket *sock)
{
	if (sock->closing)
		return;
	sock->closing = true;
	uv_poll_stop(&sock->poll);
	uv_close((uv_handle_t *)&sock->poll, on_closed);
	napi_delete_reference(sock->env, sock->callback);
	napi_async_destroy(sock->env, sock->async);
}

static void on_environment_end(napi_async_cleanup_hook_handle hook, void *pointer)
{
	(void)hook;
	begin_close(pointer);
}

static void on_collected(napi_env env, void *pointer, void *hint)
{
	(void)env;
	(void)hint;
	begin_close(pointer);
	release(pointer);
}

static void watch(struct netlink_socket *sock)
{
	uv_poll_start(&sock->poll, UV_READABLE | (sock->wants_write ? UV_WRITABLE : 0), on_poll);
}

/* Reads what is there. Returns the bytes; *error is ENOBUFS (go on) or what ended the socket. */
static size_t drain(struct netlink_socket *sock, int *error)
{
	size_t used = 0;

	*error = 0;
	for (;;) {
		struct sockaddr_nl from = { 0 };
		socklen_t from_size = sizeof(from);
		ssize_t got;

		if (BATCH - used < DATAGRAM) {
			if (*error != ENOBUFS)
				break;
			/*
			 * Until it is empty an overflowed socket takes nothing and does not say so again. What is left in it is
			 * given up, so that no request is sent whose answer would vanish.
			 */
			used = 0;
		}
		got = recvfrom(sock->fd, sock->buffer + used, DATAGRAM, MSG_DONTWAIT | MSG_TRUNC,
				       (struct sockaddr *)&from, &from_size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == ENOBUFS) {
			*error = ENOBUFS;
			continue;
		}
		if (got < 0) {
			if (errno != EAGAIN)
				*error = errno;
			break;
		}
		if (from.nl_pid != 0) /* from a process, not from the kernel */
			continue;
		if (got > DATAGRAM) { /* cut off: what it said is lost, as in an overflow */
			*error = ENOBUFS;
			continue;
		}
		memset(sock->buffer + used + got, 0, (size_t)(-got & 3));
		used += ((size_t)got + 3) & ~(size_t)3;
	}
	return used;
}

static void call_back(struct netlink_socket *sock, size_t length, int error, bool writable)
{
	napi_env env = sock->env;
	napi_callback_scope scope;
	napi_value args[3], callback, receiver, resource;
	bool thrown = false;

	if (napi_create_buffer_copy(env, length, sock->buffer, NULL, &args[0]) != napi_ok)
		return;
	napi_create_int32(env, error, &args[1]);
	napi_get_boolean(env, writable, &args[2]);
	napi_get_reference_value(env, sock->callback, &callback);
	napi_get_global(env, &receiver);
	napi_create_object(env, &resource);
	napi_open_callback_scope(env, resource, sock->async, &scope);
	napi_call_function(env, receiver, callback, 3, args, NULL);
	if (napi_is_exception_pending(env, &thrown) == napi_ok && thrown) {
		napi_value exception;

		napi_get_and_clear_last_exception(env, &exception);
		napi_fatal_exception(env, exception);
	}
	napi_close_callback_scope(env, scope);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct netlink_socket *sock = poll->data;
	bool writable = sock->wants_write && (events & UV_WRITABLE);
	napi_handle_scope scope;
	size_t length;
	int error;

	napi_open_handle_scope(sock->env, &scope);
	length = drain(sock, &error);
	if (writable)
		sock->wants_write = false;
	/*
	 * An overflow raises EPOLLERR; libuv then reports an error status and stops watching. recvfrom() has told (and
	 * cleared) the ENOBUFS behind it, so watching again is right; without it the socket would be silent for ever.
	 */
	if ((status < 0 || writable) && (!error || error == ENOBUFS))
		watch(sock);
	else if (error && error != ENOBUFS)
		uv_poll_stop(&sock->poll);
	if (length || error || writable)
		call_back(sock, length, error, writable);
	napi_close_handle_scope(sock->env, scope);
}

struct socket_request {
	int protocol;
};

static int new_socket(void *argument)
{
	struct socket_request *request = argument;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, request->protocol);

	return fd < 0 ? -errno : fd;
}

static int configure(int fd, int buffer)
{
	struct sockaddr_nl own = { .nl_family = AF_NETLINK };
	int one = 1;

	if (bind(fd, (struct sockaddr *)&own, sizeof(own)))
		return -errno;
	/* The first of each needs CAP_NET_ADMIN and passes the system's limit; without it the limit has to do. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer));
	if (setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one)) ||
	    setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &one, sizeof(one)))
		return -errno;
	return 0;
}

/* Takes over fd, also when it fails. */
static struct netlink_socket *on_loop(napi_env env, int fd, napi_value callback)
{
	struct netlink_socket *sock = calloc(1, sizeof(*sock));
	uv_loop_t *loop;
	napi_value name;

	if (!sock || !(sock->buffer = malloc(BATCH)) || napi_get_uv_event_loop(env, &loop) != napi_ok ||
	    uv_poll_init(loop, &sock->poll, fd)) {
		if (sock)
			free(sock->buffer);
		free(sock);
		close(fd);
		return NULL;
	}
	sock->fd = fd;
	sock->env = env;
	sock->references = 2;
	sock->poll.data = sock;
	napi_create_reference(env, callback, 1, &sock->callback);
	napi_create_string_utf8(env, "netlink", NAPI_AUTO_LENGTH, &name);
	napi_async_init(env, NULL, name, &sock->async);
	napi_add_async_cleanup_hook(env, on_environment_end, sock, &sock->hook);
	watch(sock);
	return sock;
}

napi_value open_socket(napi_env env, napi_callback_info info)
{
	napi_value args[4], handle;
	int64_t protocol, netns_fd, buffer;
	struct socket_request request;
	struct netlink_socket *sock;
	int fd, error;

	if (!take_args(env, info, 4, args) || !int_arg(env, args[0], "protocol", 0, 31, &protocol) ||
	    !int_arg(env, args[1], "netnsFd", -1, INT_MAX, &netns_fd) ||
	    !int_arg(env, args[2], "bufferBytes", 4096, LARGEST_BUFFER, &buffer) ||
	    !function_arg(env, args[3], "callback"))
		return NULL;
	request.protocol = (int)protocol;
	fd = in_netns((int)netns_fd, new_socket, &request);
	if (fd < 0)
		return throw_errno(env, -fd, "open netlink socket");
	error = configure(fd, (int)buffer);
	if (error) {
		close(fd);
		return throw_errno(env, -error, "set up netlink socket");
	}
	sock = on_loop(env, fd, args[3]);
	if (!sock)
		return throw_errno(env, ENOMEM, "watch netlink socket");
	napi_create_external(env, sock, on_collected, NULL, &handle);
	napi_type_tag_object(env, handle, &SOCKET_TAG);
	return handle;
}

/* The open socket behind a handle, or NULL with an exception. */
static struct netlink_socket *socket_arg(napi_env env, napi_value value)
{
	napi_valuetype type;
	bool ours = false;
	void *sock = NULL;

	if (napi_typeof(env, value, &type) != napi_ok || type != napi_external ||
	    napi_check_object_type_tag(env, value, &SOCKET_TAG, &ours) != napi_ok || !ours) {
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "handle must come from openSocket");
		return NULL;
	}
	napi_get_value_external(env, value, &sock);
	if (!((struct netlink_socket *)sock)->closing)
		return sock;
	napi_throw_error(env, "ERR_SOCKET_CLOSED", "the netlink socket is closed");
	return NULL;
}

napi_value send_bytes(napi_env env, napi_callback_info info)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct netlink_socket *sock;
	napi_value args[2], sent;
	uint8_t *bytes;
	size_t length;
	ssize_t result;

	if (!take_args(env, info, 2, args) || !(sock = socket_arg(env, args[0])) ||
	    !bytes_arg(env, args[1], "bytes", &bytes, &length))
		return NULL;
	do
		result = sendto(sock->fd, bytes, length, MSG_DONTWAIT, (struct sockaddr *)&kernel, sizeof(kernel));
	while (result < 0 && errno == EINTR);
	if (result < 0 && errno != EAGAIN)
		return throw_errno(env, errno, "send to the kernel");
	if (result < 0) {
		sock->wants_write = true;
		watch(sock);
	}
	napi_get_boolean(env, result >= 0, &sent);
	return sent;
}

napi_value set_membership(napi_env env, napi_callback_info info)
{
	struct netlink_socket *sock;
	napi_value args[3];
	int64_t group;
	bool join;
	int number;

	if (!take_args(env, info, 3, args) || !(sock = socket_arg(env, args[0])) ||
	    !int_arg(env, args[1], "group", 1, INT_MAX, &group) || !bool_arg(env, args[2], "join", &join))
		return NULL;
	number = (int)group;
	if (setsockopt(sock->fd, SOL_NETLINK, join ? NETLINK_ADD_MEMBERSHIP : NETLINK_DROP_MEMBERSHIP, &number,
		       sizeof(number)))
		return throw_errno(env, errno, "change multicast membership");
	return NULL;
}

napi_value hold_loop(napi_env env, napi_callback_info info)
{
	struct netlink_socket *sock;
	napi_value args[2];
	bool on;

	if (!take_args(env, info, 2, args) || !(sock = socket_arg(env, args[0])) || !bool_arg(env, args[1], "on", &on))
		return NULL;
	if (on)
		uv_ref((uv_handle_t *)&sock->poll);
	else
		uv_unref((uv_handle_t *)&sock->poll);
	return NULL;
}

napi_value netns_of(napi_env env, napi_callback_info info)
{
	struct netlink_socket *sock;
	napi_value args[1], result;
	int fd;

	if (!take_args(env, info, 1, args) || !(sock = socket_arg(env, args[0])))
		return NULL;
	fd = ioctl(sock->fd, SIOCGSKNS);
	if (fd < 0)
		return throw_errno(env, errno, "find the namespace of the socket");
	napi_create_int32(env, fd, &result);
	return result;
}

napi_value close_socket(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	napi_valuetype type;
	bool ours = false;
	void *sock = NULL;

	if (!take_args(env, info, 1, args))
		return NULL;
	if (napi_typeof(env, args[0], &type) != napi_ok || type != napi_external ||
	    napi_check_object_type_tag(env, args[0], &SOCKET_TAG, &ours) != napi_ok || !ours) {
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "handle must come from openSocket");
		return NULL;
	}
	napi_get_value_external(env, args[0], &sock);
	begin_close(sock);
	return NULL;
}
