#define _GNU_SOURCE
#include "ring.h"
#include "handle.h"
#include "log.h"
#include "records.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <uv.h>

enum {
	FIRST_CAPACITY = 65536,
	/* What one callback may carry; the rest comes with the next turn of the loop. */
	MOST_BYTES = 4 << 20,
};

struct ring {
	uv_poll_t poll;
	struct ring_buffer *buffer;
	int references; /* the JavaScript handle and the poll handle */
	bool closing;
	napi_env env;
	napi_ref callback;
	napi_async_context async;
	napi_async_cleanup_hook_handle hook;
	struct records records;
};

static const napi_type_tag RING_TAG = { 0x6c69626270662d74ULL, 0x72696e6700000001ULL };

static int on_record(void *context, void *data, size_t size)
{
	struct ring *ring = context;
	int error = add_record(&ring->records, data, size);

	return error ? error : ring->records.used > MOST_BYTES ? -ENOBUFS : 0; /* stops; this record is consumed */
}

static void call_back(struct ring *ring)
{
	napi_env env = ring->env;
	napi_callback_scope scope;
	napi_value bytes, callback, receiver, resource;
	bool thrown = false;

	if (napi_create_buffer_copy(env, ring->records.used, ring->records.bytes, NULL, &bytes) != napi_ok)
		return;
	napi_get_reference_value(env, ring->callback, &callback);
	napi_get_global(env, &receiver);
	napi_create_object(env, &resource);
	napi_open_callback_scope(env, resource, ring->async, &scope);
	napi_call_function(env, receiver, callback, 1, &bytes, NULL);
	if (napi_is_exception_pending(env, &thrown) == napi_ok && thrown) {
		napi_value exception;

		napi_get_and_clear_last_exception(env, &exception);
		napi_fatal_exception(env, exception);
	}
	napi_close_callback_scope(env, scope);
}

static void drain(struct ring *ring)
{
	napi_handle_scope scope;

	ring->records.used = 0;
	ring_buffer__consume(ring->buffer);
	if (!ring->records.used)
		return;
	napi_open_handle_scope(ring->env, &scope);
	call_back(ring);
	napi_close_handle_scope(ring->env, scope);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	drain(poll->data);
}

static void release(struct ring *ring)
{
	if (--ring->references)
		return;
	free(ring->records.bytes);
	free(ring);
}

static void on_closed(uv_handle_t *handle)
{
	struct ring *ring = handle->data;

	ring_buffer__free(ring->buffer);
	napi_remove_async_cleanup_hook(ring->hook);
	release(ring);
}

static void begin_close(struct ring *ring)
{
	if (ring->closing)
		return;
	ring->closing = true;
	uv_poll_stop(&ring->poll);
	uv_close((uv_handle_t *)&ring->poll, on_closed);
	napi_delete_reference(ring->env, ring->callback);
	napi_async_destroy(ring->env, ring->async);
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

static struct ring *new_ring(napi_env env, int map_fd, napi_value callback)
{
	struct ring *ring = calloc(1, sizeof(*ring));
	uv_loop_t *loop;
	napi_value name;

	if (!ring)
		return NULL;
	ring->records.capacity = FIRST_CAPACITY;
	ring->records.bytes = malloc(FIRST_CAPACITY);
	ring->buffer = ring->records.bytes ? ring_buffer__new(map_fd, on_record, ring, NULL) : NULL;
	if (!ring->buffer || napi_get_uv_event_loop(env, &loop) != napi_ok ||
	    uv_poll_init(loop, &ring->poll, ring_buffer__epoll_fd(ring->buffer))) {
		int error = errno;

		ring_buffer__free(ring->buffer);
		free(ring->records.bytes);
		free(ring);
		errno = error;
		return NULL;
	}
	ring->env = env;
	ring->references = 2;
	ring->poll.data = ring;
	napi_create_reference(env, callback, 1, &ring->callback);
	napi_create_string_utf8(env, "bpf ring buffer", NAPI_AUTO_LENGTH, &name);
	napi_async_init(env, NULL, name, &ring->async);
	napi_add_async_cleanup_hook(env, on_environment_end, ring, &ring->hook);
	uv_poll_start(&ring->poll, UV_READABLE, on_poll);
	return ring;
}

napi_value open_ring(napi_env env, napi_callback_info info)
{
	struct handle *map;
	struct ring *ring;
	napi_value args[2], value;

	if (!take_args(env, info, 2, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !function_arg(env, args[1], "callback"))
		return NULL;
	log_reset();
	ring = new_ring(env, map->fd, args[1]);
	if (!ring)
		return throw_bpf_error(env, errno ? errno : EINVAL, "open ring buffer");
	napi_create_external(env, ring, on_collected, NULL, &value);
	napi_type_tag_object(env, value, &RING_TAG);
	return value;
}

static struct ring *ring_arg(napi_env env, napi_value value)
{
	napi_valuetype type;
	bool ours = false;
	void *ring = NULL;

	if (napi_typeof(env, value, &type) == napi_ok && type == napi_external &&
	    napi_check_object_type_tag(env, value, &RING_TAG, &ours) == napi_ok && ours) {
		napi_get_value_external(env, value, &ring);
		return ring;
	}
	napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "ring must come from openRing");
	return NULL;
}

static struct ring *open_ring_arg(napi_env env, napi_value value)
{
	struct ring *ring = ring_arg(env, value);

	if (!ring || !ring->closing)
		return ring;
	napi_throw_error(env, "ERR_CLOSED", "the ring buffer is closed");
	return NULL;
}

napi_value consume_ring(napi_env env, napi_callback_info info)
{
	struct ring *ring;
	napi_value args[1];

	if (take_args(env, info, 1, args) && (ring = open_ring_arg(env, args[0])))
		drain(ring);
	return NULL;
}

napi_value hold_ring(napi_env env, napi_callback_info info)
{
	struct ring *ring;
	napi_value args[2];
	bool on;

	if (!take_args(env, info, 2, args) || !(ring = open_ring_arg(env, args[0])) || !bool_arg(env, args[1], "on", &on))
		return NULL;
	if (on)
		uv_ref((uv_handle_t *)&ring->poll);
	else
		uv_unref((uv_handle_t *)&ring->poll);
	return NULL;
}

napi_value close_ring(napi_env env, napi_callback_info info)
{
	struct ring *ring;
	napi_value args[1];

	if (take_args(env, info, 1, args) && (ring = ring_arg(env, args[0])))
		begin_close(ring);
	return NULL;
}
