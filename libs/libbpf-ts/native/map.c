#include "map.h"
#include "handle.h"
#include "log.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* A batch cursor is a key for hash tables, and never less than this for others. */
enum { SMALLEST_CURSOR = 8 };

/* Exactly `count` elements of `size` bytes. */
static bool sized_arg(napi_env env, napi_value value, const char *name, uint64_t size, uint64_t count, uint8_t **out)
{
	size_t length;
	char text[128];

	if (!bytes_arg(env, value, name, out, &length))
		return false;
	if (length == size * count)
		return true;
	snprintf(text, sizeof(text), "%s has %zu bytes, the map wants %llu", name, length, (unsigned long long)(size * count));
	napi_throw_type_error(env, "ERR_OUT_OF_RANGE", text);
	return false;
}

static napi_value boolean(napi_env env, bool value)
{
	napi_value result;

	napi_get_boolean(env, value, &result);
	return result;
}

static napi_value pair(napi_env env, int error, uint32_t count)
{
	napi_value result, element;

	napi_create_array_with_length(env, 2, &result);
	napi_create_int32(env, error, &element);
	napi_set_element(env, result, 0, element);
	napi_create_uint32(env, count, &element);
	napi_set_element(env, result, 1, element);
	return result;
}

napi_value map_lookup(napi_env env, napi_callback_info info)
{
	struct handle *map;
	napi_value args[3];
	uint8_t *key, *value;

	if (!take_args(env, info, 3, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !sized_arg(env, args[1], "key", map->key_size, 1, &key) ||
	    !sized_arg(env, args[2], "value", map->value_bytes, 1, &value))
		return NULL;
	if (!bpf_map_lookup_elem(map->fd, key, value))
		return boolean(env, true);
	if (errno == ENOENT)
		return boolean(env, false);
	log_reset();
	return throw_bpf_error(env, errno, "look up in map");
}

napi_value map_update(napi_env env, napi_callback_info info)
{
	struct handle *map;
	napi_value args[4];
	uint8_t *key, *value;
	int64_t flags;

	if (!take_args(env, info, 4, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !sized_arg(env, args[1], "key", map->key_size, 1, &key) ||
	    !sized_arg(env, args[2], "value", map->value_bytes, 1, &value) ||
	    !int_arg(env, args[3], "flags", 0, BPF_EXIST, &flags))
		return NULL;
	if (!bpf_map_update_elem(map->fd, key, value, (__u64)flags))
		return NULL;
	log_reset();
	return throw_bpf_error(env, errno, "update map");
}

napi_value map_delete(napi_env env, napi_callback_info info)
{
	struct handle *map;
	napi_value args[2];
	uint8_t *key;

	if (!take_args(env, info, 2, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !sized_arg(env, args[1], "key", map->key_size, 1, &key))
		return NULL;
	if (!bpf_map_delete_elem(map->fd, key))
		return boolean(env, true);
	if (errno == ENOENT)
		return boolean(env, false);
	log_reset();
	return throw_bpf_error(env, errno, "delete from map");
}

napi_value map_next_key(napi_env env, napi_callback_info info)
{
	struct handle *map;
	napi_value args[3];
	uint8_t *key, *next;
	size_t length;

	if (!take_args(env, info, 3, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !optional_bytes_arg(env, args[1], "key", &key, &length) ||
	    (key && !sized_arg(env, args[1], "key", map->key_size, 1, &key)) ||
	    !sized_arg(env, args[2], "next", map->key_size, 1, &next))
		return NULL;
	if (!bpf_map_get_next_key(map->fd, key, next))
		return boolean(env, true);
	if (errno == ENOENT)
		return boolean(env, false);
	log_reset();
	return throw_bpf_error(env, errno, "walk map");
}

napi_value map_update_batch(napi_env env, napi_callback_info info)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	struct handle *map;
	napi_value args[5];
	uint8_t *keys, *values;
	int64_t count, flags;
	__u32 done;
	int error = 0;

	if (!take_args(env, info, 5, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !int_arg(env, args[3], "count", 1, INT_MAX, &count) ||
	    !int_arg(env, args[4], "flags", 0, BPF_EXIST, &flags) ||
	    !sized_arg(env, args[1], "keys", map->key_size, (uint64_t)count, &keys) ||
	    !sized_arg(env, args[2], "values", map->value_bytes, (uint64_t)count, &values))
		return NULL;
	done = (__u32)count;
	options.elem_flags = (__u64)flags;
	if (bpf_map_update_batch(map->fd, keys, values, &done, &options))
		error = errno;
	return pair(env, error, done);
}

napi_value map_delete_batch(napi_env env, napi_callback_info info)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	struct handle *map;
	napi_value args[3];
	uint8_t *keys;
	int64_t count;
	__u32 done;
	int error = 0;

	if (!take_args(env, info, 3, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)) ||
	    !int_arg(env, args[2], "count", 1, INT_MAX, &count) ||
	    !sized_arg(env, args[1], "keys", map->key_size, (uint64_t)count, &keys))
		return NULL;
	done = (__u32)count;
	if (bpf_map_delete_batch(map->fd, keys, &done, &options))
		error = errno;
	return pair(env, error, done);
}

napi_value map_lookup_batch(napi_env env, napi_callback_info info)
{
	LIBBPF_OPTS(bpf_map_batch_opts, options);
	struct handle *map;
	napi_value args[6];
	uint8_t *cursor_in, *cursor_out, *keys, *values;
	size_t length;
	uint32_t cursor_size;
	int64_t count;
	__u32 got;
	int error = 0;

	if (!take_args(env, info, 6, args) || !(map = handle_arg(env, args[0], HANDLE_MAP)))
		return NULL;
	cursor_size = map->key_size < SMALLEST_CURSOR ? SMALLEST_CURSOR : map->key_size;
	if (!optional_bytes_arg(env, args[1], "cursor", &cursor_in, &length) ||
	    (cursor_in && !sized_arg(env, args[1], "cursor", cursor_size, 1, &cursor_in)) ||
	    !sized_arg(env, args[2], "next cursor", cursor_size, 1, &cursor_out) ||
	    !int_arg(env, args[5], "count", 1, INT_MAX, &count) ||
	    !sized_arg(env, args[3], "keys", map->key_size, (uint64_t)count, &keys) ||
	    !sized_arg(env, args[4], "values", map->value_bytes, (uint64_t)count, &values))
		return NULL;
	got = (__u32)count;
	if (bpf_map_lookup_batch(map->fd, cursor_in, cursor_out, keys, values, &got, &options))
		error = errno;
	return pair(env, error, got);
}
