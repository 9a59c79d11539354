#define _GNU_SOURCE
#include "handle.h"
#include "log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const napi_type_tag HANDLE_TAG = { 0x6c69626270662d74ULL, 0x68616e646c650001ULL };
static const char *const KIND_NAMES[] = { "", "map", "program", "link" };

static void on_collected(napi_env env, void *pointer, void *hint)
{
	struct handle *handle = pointer;

	(void)env;
	(void)hint;
	if (handle->fd >= 0)
		close(handle->fd);
	free(handle);
}

static bool is_per_cpu(uint32_t type)
{
	return type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_ARRAY ||
	       type == BPF_MAP_TYPE_LRU_PERCPU_HASH || type == BPF_MAP_TYPE_PERCPU_CGROUP_STORAGE;
}

static int fill_map(struct handle *handle)
{
	struct bpf_map_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(handle->fd, &info, &size))
		return errno;
	handle->map_type = info.type;
	handle->key_size = info.key_size;
	handle->value_size = info.value_size;
	handle->max_entries = info.max_entries;
	handle->value_bytes = info.value_size;
	if (is_per_cpu(info.type)) {
		int cpus = libbpf_num_possible_cpus();

		if (cpus <= 0)
			return EIO;
		handle->value_bytes = ((info.value_size + 7) & ~7u) * (uint32_t)cpus;
	}
	return 0;
}

napi_value new_handle(napi_env env, enum handle_kind kind, int fd)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	int error = handle ? 0 : ENOMEM;
	napi_value value;

	if (handle) {
		handle->kind = kind;
		handle->fd = fd;
		if (kind == HANDLE_MAP)
			error = fill_map(handle);
	}
	if (error) {
		close(fd);
		free(handle);
		return throw_bpf_error(env, error, "open BPF handle");
	}
	napi_create_external(env, handle, on_collected, NULL, &value);
	napi_type_tag_object(env, value, &HANDLE_TAG);
	return value;
}

static struct handle *any_handle(napi_env env, napi_value value)
{
	napi_valuetype type;
	bool ours = false;
	void *handle = NULL;

	if (napi_typeof(env, value, &type) == napi_ok && type == napi_external &&
	    napi_check_object_type_tag(env, value, &HANDLE_TAG, &ours) == napi_ok && ours) {
		napi_get_value_external(env, value, &handle);
		return handle;
	}
	napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "handle must be a BPF handle of this addon");
	return NULL;
}

struct handle *handle_arg(napi_env env, napi_value value, enum handle_kind kind)
{
	struct handle *handle = any_handle(env, value);
	char text[96];

	if (!handle)
		return NULL;
	if (handle->kind != kind) {
		snprintf(text, sizeof(text), "handle must be a BPF %s, it is a %s", KIND_NAMES[kind], KIND_NAMES[handle->kind]);
		napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", text);
		return NULL;
	}
	if (handle->fd >= 0)
		return handle;
	snprintf(text, sizeof(text), "the BPF %s is closed", KIND_NAMES[kind]);
	napi_throw_error(env, "ERR_CLOSED", text);
	return NULL;
}

napi_value close_handle(napi_env env, napi_callback_info info)
{
	struct handle *handle;
	napi_value args[1];

	if (!take_args(env, info, 1, args) || !(handle = any_handle(env, args[0])))
		return NULL;
	if (handle->fd >= 0)
		close(handle->fd);
	handle->fd = -1;
	return NULL;
}

napi_value pin_handle(napi_env env, napi_callback_info info)
{
	struct handle *handle;
	napi_value args[2];
	char path[PATH_MAX];

	if (!take_args(env, info, 2, args) || !(handle = any_handle(env, args[0])) ||
	    !handle_arg(env, args[0], handle->kind) || !string_arg(env, args[1], "path", path, sizeof(path)))
		return NULL;
	log_reset();
	if (bpf_obj_pin(handle->fd, path))
		return throw_bpf_error(env, errno, "pin BPF object");
	return NULL;
}

/* The anonymous inode of a BPF fd tells its kind. */
static enum handle_kind kind_of(int fd)
{
	char link[64], target[64];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, target, sizeof(target) - 1);
	if (length < 0)
		return 0;
	target[length] = 0;
	if (strstr(target, "bpf-map"))
		return HANDLE_MAP;
	if (strstr(target, "bpf-prog"))
		return HANDLE_PROGRAM;
	/* bpf-link, and bpf_link of some kernels */
	return strstr(target, "bpf-link") || strstr(target, "bpf_link") ? HANDLE_LINK : 0;
}

napi_value open_pinned(napi_env env, napi_callback_info info)
{
	napi_value args[2];
	char path[PATH_MAX];
	int64_t kind;
	int fd;

	if (!take_args(env, info, 2, args) || !int_arg(env, args[0], "kind", HANDLE_MAP, HANDLE_LINK, &kind) ||
	    !string_arg(env, args[1], "path", path, sizeof(path)))
		return NULL;
	log_reset();
	fd = bpf_obj_get(path);
	if (fd < 0)
		return throw_bpf_error(env, errno, "open pinned BPF object");
	if (kind_of(fd) != (enum handle_kind)kind) {
		char text[96];

		snprintf(text, sizeof(text), "what is pinned there is no BPF %s", KIND_NAMES[kind]);
		close(fd);
		napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", text);
		return NULL;
	}
	return new_handle(env, (enum handle_kind)kind, fd);
}

static void put_number(napi_env env, napi_value object, const char *name, double number)
{
	napi_value value;

	napi_create_double(env, number, &value);
	napi_set_named_property(env, object, name, value);
}

static void put_text(napi_env env, napi_value object, const char *name, const char *text)
{
	napi_value value;

	napi_create_string_latin1(env, text, NAPI_AUTO_LENGTH, &value);
	napi_set_named_property(env, object, name, value);
}

static int put_map_info(napi_env env, napi_value object, struct handle *handle)
{
	struct bpf_map_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(handle->fd, &info, &size))
		return errno;
	put_number(env, object, "id", info.id);
	put_text(env, object, "name", info.name);
	put_number(env, object, "type", info.type);
	put_number(env, object, "keySize", info.key_size);
	put_number(env, object, "valueSize", info.value_size);
	put_number(env, object, "maxEntries", info.max_entries);
	put_number(env, object, "flags", info.map_flags);
	return 0;
}

enum { MOST_MAP_IDS = 64 };

static int put_program_info(napi_env env, napi_value object, struct handle *handle)
{
	__u32 map_ids[MOST_MAP_IDS];
	struct bpf_prog_info info = { .map_ids = (uintptr_t)map_ids, .nr_map_ids = MOST_MAP_IDS };
	__u32 size = sizeof(info);
	char tag[2 * BPF_TAG_SIZE + 1];
	napi_value ids;

	if (bpf_obj_get_info_by_fd(handle->fd, &info, &size))
		return errno;
	for (int i = 0; i < BPF_TAG_SIZE; i++)
		snprintf(tag + 2 * i, 3, "%02x", info.tag[i]);
	put_number(env, object, "id", info.id);
	put_text(env, object, "name", info.name);
	put_number(env, object, "type", info.type);
	put_text(env, object, "tag", tag);
	put_number(env, object, "verifiedInstructions", info.verified_insns);
	napi_create_array(env, &ids);
	for (__u32 i = 0; i < info.nr_map_ids && i < MOST_MAP_IDS; i++) {
		napi_value id;

		napi_create_uint32(env, map_ids[i], &id);
		napi_set_element(env, ids, i, id);
	}
	napi_set_named_property(env, object, "mapIds", ids);
	return 0;
}

/* The head of struct bpf_link_info, with the member for tcx that older headers lack. */
struct link_info {
	__u32 type, id, prog_id, reserved;
	__u32 ifindex, attach_type;
	__u8 rest[64];
};

static int put_link_info(napi_env env, napi_value object, struct handle *handle)
{
	struct link_info info = { 0 };
	__u32 size = sizeof(info);

	if (bpf_obj_get_info_by_fd(handle->fd, &info, &size))
		return errno;
	put_number(env, object, "id", info.id);
	put_number(env, object, "type", info.type);
	put_number(env, object, "programId", info.prog_id);
	put_number(env, object, "ifindex", info.ifindex);
	put_number(env, object, "attachType", info.attach_type);
	return 0;
}

napi_value handle_info(napi_env env, napi_callback_info info)
{
	struct handle *handle;
	napi_value args[1], object;
	int error;

	if (!take_args(env, info, 1, args) || !(handle = any_handle(env, args[0])) ||
	    !handle_arg(env, args[0], handle->kind))
		return NULL;
	log_reset();
	napi_create_object(env, &object);
	error = handle->kind == HANDLE_MAP	     ? put_map_info(env, object, handle) :
		handle->kind == HANDLE_PROGRAM ? put_program_info(env, object, handle) :
						     put_link_info(env, object, handle);
	return error ? throw_bpf_error(env, error, "read BPF object info") : object;
}
