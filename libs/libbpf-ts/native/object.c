#define _GNU_SOURCE
#include "object.h"
#include "handle.h"
#include "log.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 128 };

static napi_value text_value(napi_env env, const char *text)
{
	napi_value value;

	napi_create_string_utf8(env, text ? text : "", NAPI_AUTO_LENGTH, &value);
	return value;
}

static void put_number(napi_env env, napi_value object, const char *name, double number)
{
	napi_value value;

	napi_create_double(env, number, &value);
	napi_set_named_property(env, object, name, value);
}

static void append(napi_env env, napi_value array, napi_value element)
{
	uint32_t length;

	napi_get_array_length(env, array, &length);
	napi_set_element(env, array, length, element);
}

/* libbpf keeps no pointer into the bytes after loading; until then they must not move, and JavaScript is not running. */
static struct bpf_object *open_object(napi_env env, napi_value bytes, const char *name)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = name);
	struct bpf_object *object;
	uint8_t *data;
	size_t length;

	if (!bytes_arg(env, bytes, "bytes", &data, &length))
		return NULL;
	log_reset();
	object = bpf_object__open_mem(data, length, &options);
	if (!object)
		throw_bpf_error(env, errno ? errno : EINVAL, "read BPF object");
	return object;
}

static struct bpf_map *read_only_data(struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		const char *name = bpf_map__name(map);
		size_t length = strlen(name);

		if (length >= 7 && !strcmp(name + length - 7, ".rodata"))
			return map;
	}
	return NULL;
}

/* Calls each(context, name, offset, size) for every variable of .rodata until it returns true. */
static bool for_each_constant(struct bpf_object *object, bool (*each)(void *context, const char *name, uint32_t offset, uint32_t size),
			      void *context)
{
	struct btf *btf = bpf_object__btf(object);
	int id = btf ? btf__find_by_name_kind(btf, ".rodata", BTF_KIND_DATASEC) : -1;
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	const struct btf_var_secinfo *variable;

	if (!section)
		return false;
	variable = btf_var_secinfos(section);
	for (int i = 0; i < btf_vlen(section); i++, variable++) {
		const struct btf_type *type = btf__type_by_id(btf, variable->type);
		const char *name = type ? btf__name_by_offset(btf, type->name_off) : NULL;

		if (name && each(context, name, variable->offset, variable->size))
			return true;
	}
	return false;
}

struct constant_list {
	napi_env env;
	napi_value array;
};

static bool list_constant(void *context, const char *name, uint32_t offset, uint32_t size)
{
	struct constant_list *list = context;
	napi_value entry;

	(void)offset;
	napi_create_object(list->env, &entry);
	napi_set_named_property(list->env, entry, "name", text_value(list->env, name));
	put_number(list->env, entry, "size", size);
	append(list->env, list->array, entry);
	return false;
}

napi_value read_object(napi_env env, napi_callback_info info)
{
	struct constant_list list = { .env = env };
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_map *map;
	napi_value args[1], result, maps, programs;

	if (!take_args(env, info, 1, args) || !(object = open_object(env, args[0], "object")))
		return NULL;
	napi_create_object(env, &result);
	napi_create_array(env, &maps);
	napi_create_array(env, &programs);
	napi_create_array(env, &list.array);
	bpf_object__for_each_map(map, object) {
		napi_value entry;

		napi_create_object(env, &entry);
		napi_set_named_property(env, entry, "name", text_value(env, bpf_map__name(map)));
		put_number(env, entry, "type", bpf_map__type(map));
		put_number(env, entry, "keySize", bpf_map__key_size(map));
		put_number(env, entry, "valueSize", bpf_map__value_size(map));
		put_number(env, entry, "maxEntries", bpf_map__max_entries(map));
		put_number(env, entry, "flags", bpf_map__map_flags(map));
		append(env, maps, entry);
	}
	bpf_object__for_each_program(program, object) {
		napi_value entry;

		napi_create_object(env, &entry);
		napi_set_named_property(env, entry, "name", text_value(env, bpf_program__name(program)));
		napi_set_named_property(env, entry, "section", text_value(env, bpf_program__section_name(program)));
		append(env, programs, entry);
	}
	for_each_constant(object, list_constant, &list);
	bpf_object__close(object);
	napi_set_named_property(env, result, "maps", maps);
	napi_set_named_property(env, result, "programs", programs);
	napi_set_named_property(env, result, "constants", list.array);
	return result;
}

/* The own property, or NULL when there is none. */
static napi_value property(napi_env env, napi_value object, const char *name)
{
	napi_value key = text_value(env, name), value;
	napi_valuetype type;
	bool has = false;

	if (napi_has_own_property(env, object, key, &has) != napi_ok || !has ||
	    napi_get_property(env, object, key, &value) != napi_ok || napi_typeof(env, value, &type) != napi_ok ||
	    type == napi_undefined)
		return NULL;
	return value;
}

static bool set_up_maps(napi_env env, struct bpf_object *object, napi_value options)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, object) {
		napi_value settings = property(env, options, bpf_map__name(map));
		napi_value entries = settings ? property(env, settings, "maxEntries") : NULL;
		napi_value pin = settings ? property(env, settings, "pinPath") : NULL;
		char path[PATH_MAX];
		int64_t count;
		int error = 0;

		if (entries) {
			if (!int_arg(env, entries, "maxEntries", 1, UINT32_MAX, &count))
				return false;
			error = bpf_map__set_max_entries(map, (__u32)count);
		}
		if (!error && pin) {
			if (!string_arg(env, pin, "pinPath", path, sizeof(path)))
				return false;
			error = bpf_map__set_pin_path(map, path);
		}
		if (error) {
			throw_bpf_error(env, -error, "set up BPF map");
			return false;
		}
	}
	return true;
}

struct constant_values {
	napi_env env;
	napi_value values;
	uint8_t *memory;
	size_t memory_size;
};

/* True stops at an error, with an exception pending. */
static bool set_constant(void *context, const char *name, uint32_t offset, uint32_t size)
{
	struct constant_values *target = context;
	napi_value value = property(target->env, target->values, name);
	uint8_t *bytes;
	size_t length;

	if (!value)
		return false;
	if (!bytes_arg(target->env, value, name, &bytes, &length))
		return true;
	if (length != size || (size_t)offset + size > target->memory_size) {
		char text[256];

		snprintf(text, sizeof(text), "constant %s has %zu bytes, the program wants %u", name, length, size);
		napi_throw_type_error(target->env, "ERR_OUT_OF_RANGE", text);
		return true;
	}
	memcpy(target->memory + offset, bytes, size);
	return false;
}

static bool set_constants(napi_env env, struct bpf_object *object, napi_value values)
{
	struct constant_values target = { .env = env, .values = values };
	struct bpf_map *map = read_only_data(object);

	if (map)
		target.memory = (uint8_t *)bpf_map__initial_value(map, &target.memory_size);
	return !target.memory || !for_each_constant(object, set_constant, &target);
}

static bool choose_programs(napi_env env, struct bpf_object *object, napi_value names)
{
	struct bpf_program *program;
	napi_valuetype type;
	uint32_t count = 0;

	if (napi_typeof(env, names, &type) != napi_ok || type == napi_null)
		return true;
	napi_get_array_length(env, names, &count);
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, false);
	for (uint32_t i = 0; i < count; i++) {
		char name[NAME_BYTES];
		napi_value element;

		napi_get_element(env, names, i, &element);
		if (!string_arg(env, element, "program", name, sizeof(name)))
			return false;
		program = bpf_object__find_program_by_name(object, name);
		if (!program) {
			napi_throw_type_error(env, "ERR_INVALID_ARG_VALUE", "programs names a program that the object does not have");
			return false;
		}
		bpf_program__set_autoload(program, true);
	}
	return true;
}

/* {name, handle} with a descriptor of its own: the object is closed right after loading. */
static bool append_handle(napi_env env, napi_value array, const char *name, enum handle_kind kind, int fd)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	napi_value entry, handle;

	if (own < 0) {
		throw_bpf_error(env, errno, "keep BPF object");
		return false;
	}
	handle = new_handle(env, kind, own);
	if (!handle)
		return false;
	napi_create_object(env, &entry);
	napi_set_named_property(env, entry, "name", text_value(env, name));
	napi_set_named_property(env, entry, "handle", handle);
	append(env, array, entry);
	return true;
}

static napi_value loaded(napi_env env, struct bpf_object *object)
{
	struct bpf_program *program;
	struct bpf_map *map;
	napi_value result, maps, programs;

	napi_create_object(env, &result);
	napi_create_array(env, &maps);
	napi_create_array(env, &programs);
	bpf_object__for_each_map(map, object)
		if (bpf_map__fd(map) >= 0 && !append_handle(env, maps, bpf_map__name(map), HANDLE_MAP, bpf_map__fd(map)))
			return NULL;
	bpf_object__for_each_program(program, object)
		if (bpf_program__fd(program) >= 0 &&
		    !append_handle(env, programs, bpf_program__name(program), HANDLE_PROGRAM, bpf_program__fd(program)))
			return NULL;
	napi_set_named_property(env, result, "maps", maps);
	napi_set_named_property(env, result, "programs", programs);
	return result;
}

napi_value load_object(napi_env env, napi_callback_info info)
{
	struct bpf_object *object;
	napi_value args[5], result = NULL;
	char name[NAME_BYTES];
	int error;

	if (!take_args(env, info, 5, args) || !string_arg(env, args[1], "name", name, sizeof(name)) ||
	    !(object = open_object(env, args[0], name)))
		return NULL;
	if (set_up_maps(env, object, args[2]) && set_constants(env, object, args[3]) && choose_programs(env, object, args[4])) {
		error = bpf_object__load(object);
		result = error ? throw_bpf_error(env, -error, "load BPF object") : loaded(env, object);
	}
	bpf_object__close(object);
	return result;
}
