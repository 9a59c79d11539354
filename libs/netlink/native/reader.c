#include "reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void release(struct reader *reader)
{
	if (--reader->references)
		return;
	free(reader->buffer);
	free(reader);
}

static void close_fds(struct reader *reader)
{
	close(reader->fd);
	if (reader->on_close)
		reader->on_close(reader);
}

static void on_closed(uv_handle_t *handle)
{
	struct reader *reader = handle->data;

	napi_remove_async_cleanup_hook(reader->hook);
	release(reader);
}

void end_reader(struct reader *reader)
{
	if (reader->closing)
		return;
	reader->closing = true;
	uv_poll_stop(&reader->poll); /* from here on nobody watches the descriptor */
	close_fds(reader);
	uv_close((uv_handle_t *)&reader->poll, on_closed);
	napi_delete_reference(reader->env, reader->callback);
	napi_async_destroy(reader->env, reader->async);
}

static void on_environment_end(napi_async_cleanup_hook_handle hook, void *pointer)
{
	(void)hook;
	end_reader(pointer);
}

static void on_collected(napi_env env, void *pointer, void *hint)
{
	(void)env;
	(void)hint;
	end_reader(pointer);
	release(pointer);
}

static void call_back(struct reader *reader, size_t length)
{
	napi_env env = reader->env;
	napi_callback_scope scope;
	napi_value bytes, callback, receiver, resource;
	bool thrown = false;

	if (napi_create_buffer_copy(env, length, reader->buffer, NULL, &bytes) != napi_ok)
		return;
	napi_get_reference_value(env, reader->callback, &callback);
	napi_get_global(env, &receiver);
	napi_create_object(env, &resource);
	napi_open_callback_scope(env, resource, reader->async, &scope);
	napi_call_function(env, receiver, callback, 1, &bytes, NULL);
	if (napi_is_exception_pending(env, &thrown) == napi_ok && thrown) {
		napi_value exception;

		napi_get_and_clear_last_exception(env, &exception);
		napi_fatal_exception(env, exception);
	}
	napi_close_callback_scope(env, scope);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct reader *reader = poll->data;
	napi_handle_scope scope;
	size_t length;

	(void)events;
	napi_open_handle_scope(reader->env, &scope);
	length = reader->drain(reader);
	if (status < 0 && reader->recovers(reader))
		uv_poll_start(&reader->poll, UV_READABLE, on_poll);
	if (length)
		call_back(reader, length);
	napi_close_handle_scope(reader->env, scope);
}

bool start_reader(napi_env env, struct reader *reader, const char *name, napi_value callback)
{
	uv_loop_t *loop;
	napi_value text;

	reader->buffer = malloc(READER_BATCH);
	if (!reader->buffer || napi_get_uv_event_loop(env, &loop) != napi_ok ||
	    uv_poll_init(loop, &reader->poll, reader->fd)) {
		close_fds(reader);
		free(reader->buffer);
		free(reader);
		throw_errno(env, ENOMEM, name);
		return false;
	}
	reader->env = env;
	reader->references = 2;
	reader->poll.data = reader;
	napi_create_reference(env, callback, 1, &reader->callback);
	napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &text);
	napi_async_init(env, NULL, text, &reader->async);
	napi_add_async_cleanup_hook(env, on_environment_end, reader, &reader->hook);
	uv_poll_start(&reader->poll, UV_READABLE, on_poll);
	return true;
}

napi_value reader_handle(napi_env env, struct reader *reader, const napi_type_tag *tag)
{
	napi_value handle;

	napi_create_external(env, reader, on_collected, NULL, &handle);
	napi_type_tag_object(env, handle, tag);
	return handle;
}

struct reader *reader_arg(napi_env env, napi_value value, const napi_type_tag *tag, const char *origin, bool may_be_closed)
{
	char message[80];
	napi_valuetype type;
	bool ours = false;
	void *reader = NULL;

	if (napi_typeof(env, value, &type) != napi_ok || type != napi_external ||
	    napi_check_object_type_tag(env, value, tag, &ours) != napi_ok || !ours) {
		snprintf(message, sizeof(message), "handle must come from %s", origin);
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", message);
		return NULL;
	}
	napi_get_value_external(env, value, &reader);
	if (may_be_closed || !((struct reader *)reader)->closing)
		return reader;
	snprintf(message, sizeof(message), "what %s opened is closed", origin);
	napi_throw_error(env, "ERR_SOCKET_CLOSED", message);
	return NULL;
}
