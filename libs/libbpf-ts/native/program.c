#define _GNU_SOURCE
#include "program.h"
#include "handle.h"
#include "in_netns.h"
#include "log.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

enum {
	/* What a program may grow a packet to in a test run: the kernel allows a page less its own overhead. */
	MOST_DATA = 65536,
	MOST_CONTEXT = 4096,
	/* enum bpf_attach_type of newer headers. */
	TCX_INGRESS = 46,
	TCX_EGRESS = 47,
};

static napi_value copy_out(napi_env env, const uint8_t *bytes, size_t length)
{
	napi_value buffer, array;
	void *memory;

	napi_create_arraybuffer(env, length, &memory, &buffer);
	for (size_t i = 0; i < length; i++)
		((uint8_t *)memory)[i] = bytes[i];
	napi_create_typedarray(env, napi_uint8_array, length, buffer, 0, &array);
	return array;
}

static void put_number(napi_env env, napi_value object, const char *name, double number)
{
	napi_value value;

	napi_create_double(env, number, &value);
	napi_set_named_property(env, object, name, value);
}

napi_value test_run(napi_env env, napi_callback_info info)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct handle *program;
	napi_value args[4], result = NULL;
	uint8_t *data, *context, *out;
	size_t data_size, context_size;
	int64_t repeat;

	if (!take_args(env, info, 4, args) || !(program = handle_arg(env, args[0], HANDLE_PROGRAM)) ||
	    !optional_bytes_arg(env, args[1], "data", &data, &data_size) ||
	    !optional_bytes_arg(env, args[2], "context", &context, &context_size) ||
	    !int_arg(env, args[3], "repeat", 1, INT_MAX, &repeat))
		return NULL;
	if (data_size > MOST_DATA || context_size > MOST_CONTEXT) {
		napi_throw_type_error(env, "ERR_OUT_OF_RANGE", "data must have at most 65536 bytes, context at most 4096");
		return NULL;
	}
	out = malloc(MOST_DATA + MOST_CONTEXT);
	if (!out)
		return throw_bpf_error(env, ENOMEM, "test run");
	options.data_in = data;
	options.data_size_in = (__u32)data_size;
	options.ctx_in = context;
	options.ctx_size_in = (__u32)context_size;
	options.repeat = (int)repeat;
	if (data) {
		options.data_out = out;
		options.data_size_out = MOST_DATA;
	}
	if (context) {
		options.ctx_out = out + MOST_DATA;
		options.ctx_size_out = MOST_CONTEXT;
	}
	log_reset();
	if (bpf_prog_test_run_opts(program->fd, &options)) {
		throw_bpf_error(env, errno, "test run");
	} else {
		napi_create_object(env, &result);
		put_number(env, result, "returnValue", options.retval);
		put_number(env, result, "nanoseconds", options.duration);
		napi_set_named_property(env, result, "data", copy_out(env, out, data ? options.data_size_out : 0));
		napi_set_named_property(env, result, "context", copy_out(env, out + MOST_DATA, context ? options.ctx_size_out : 0));
	}
	free(out);
	return result;
}

struct attachment {
	int program_fd;
	int ifindex;
	bool egress;
	__u32 handle, priority;
};

static int do_attach_tcx(void *argument)
{
	struct attachment *at = argument;
	int fd = bpf_link_create(at->program_fd, at->ifindex, (enum bpf_attach_type)(at->egress ? TCX_EGRESS : TCX_INGRESS), NULL);

	return fd < 0 ? -errno : fd;
}

static int do_attach_clsact(void *argument)
{
	struct attachment *at = argument;
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = at->ifindex, .attach_point = at->egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = at->program_fd, .handle = at->handle, .priority = at->priority,
		    .flags = BPF_TC_F_REPLACE);
	int error = bpf_tc_hook_create(&hook);

	if (error && error != -EEXIST)
		return error;
	log_reset(); /* libbpf warns of the qdisc that exists */
	return bpf_tc_attach(&hook, &options);
}

static int do_detach_clsact(void *argument)
{
	struct attachment *at = argument;
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = at->ifindex, .attach_point = at->egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = at->handle, .priority = at->priority);

	return bpf_tc_detach(&hook, &options);
}

/* The id of the program of the filter, or 0 where there is none: 0 is no program's. */
static int do_query_clsact(void *argument)
{
	struct attachment *at = argument;
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = at->ifindex, .attach_point = at->egress ? BPF_TC_EGRESS : BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = at->handle, .priority = at->priority);
	int error = bpf_tc_query(&hook, &options);

	if (error == -ENOENT || error == -EINVAL) /* EINVAL: the device has no clsact qdisc at all */
		return 0;
	return error ? error : (int)options.prog_id;
}

static bool place_args(napi_env env, napi_value ifindex, napi_value egress, struct attachment *at)
{
	int64_t index;

	if (!int_arg(env, ifindex, "ifindex", 1, INT_MAX, &index) || !bool_arg(env, egress, "egress", &at->egress))
		return false;
	at->ifindex = (int)index;
	return true;
}

static bool filter_args(napi_env env, const napi_value *args, struct attachment *at, int64_t *netns_fd)
{
	int64_t handle, priority;

	if (!int_arg(env, args[0], "handle", 1, UINT32_MAX, &handle) || !int_arg(env, args[1], "priority", 1, 65535, &priority) ||
	    !int_arg(env, args[2], "netnsFd", -1, INT_MAX, netns_fd))
		return false;
	at->handle = (__u32)handle;
	at->priority = (__u32)priority;
	return true;
}

napi_value attach_tcx(napi_env env, napi_callback_info info)
{
	struct attachment at = { 0 };
	struct handle *program;
	napi_value args[4];
	int64_t netns_fd;
	int fd;

	if (!take_args(env, info, 4, args) || !(program = handle_arg(env, args[0], HANDLE_PROGRAM)) ||
	    !place_args(env, args[1], args[2], &at) || !int_arg(env, args[3], "netnsFd", -1, INT_MAX, &netns_fd))
		return NULL;
	at.program_fd = program->fd;
	log_reset();
	fd = in_netns((int)netns_fd, do_attach_tcx, &at);
	return fd < 0 ? throw_bpf_error(env, -fd, "attach by tcx") : new_handle(env, HANDLE_LINK, fd);
}

napi_value attach_clsact(napi_env env, napi_callback_info info)
{
	struct attachment at = { 0 };
	struct handle *program;
	napi_value args[6];
	int64_t netns_fd;
	int error;

	if (!take_args(env, info, 6, args) || !(program = handle_arg(env, args[0], HANDLE_PROGRAM)) ||
	    !place_args(env, args[1], args[2], &at) || !filter_args(env, args + 3, &at, &netns_fd))
		return NULL;
	at.program_fd = program->fd;
	log_reset();
	error = in_netns((int)netns_fd, do_attach_clsact, &at);
	return error < 0 ? throw_bpf_error(env, -error, "attach by clsact") : NULL;
}

napi_value detach_clsact(napi_env env, napi_callback_info info)
{
	struct attachment at = { 0 };
	napi_value args[5], found;
	int64_t netns_fd;
	int error;

	if (!take_args(env, info, 5, args) || !place_args(env, args[0], args[1], &at) || !filter_args(env, args + 2, &at, &netns_fd))
		return NULL;
	log_reset();
	error = in_netns((int)netns_fd, do_detach_clsact, &at);
	/* EINVAL: the device has no clsact qdisc at all. */
	if (error < 0 && error != -ENOENT && error != -EINVAL)
		return throw_bpf_error(env, -error, "detach from clsact");
	napi_get_boolean(env, error == 0, &found);
	return found;
}

napi_value query_clsact(napi_env env, napi_callback_info info)
{
	struct attachment at = { 0 };
	napi_value args[5], id;
	int64_t netns_fd;
	int found;

	if (!take_args(env, info, 5, args) || !place_args(env, args[0], args[1], &at) || !filter_args(env, args + 2, &at, &netns_fd))
		return NULL;
	log_reset();
	found = in_netns((int)netns_fd, do_query_clsact, &at);
	if (found < 0)
		return throw_bpf_error(env, -found, "query clsact");
	napi_create_uint32(env, (uint32_t)found, &id);
	return id;
}

napi_value update_link(napi_env env, napi_callback_info info)
{
	struct handle *link, *program;
	napi_value args[2];

	if (!take_args(env, info, 2, args) || !(link = handle_arg(env, args[0], HANDLE_LINK)) ||
	    !(program = handle_arg(env, args[1], HANDLE_PROGRAM)))
		return NULL;
	log_reset();
	return bpf_link_update(link->fd, program->fd, NULL) ? throw_bpf_error(env, errno, "update BPF link") : NULL;
}

napi_value detach_link(napi_env env, napi_callback_info info)
{
	struct handle *link;
	napi_value args[1];

	if (!take_args(env, info, 1, args) || !(link = handle_arg(env, args[0], HANDLE_LINK)))
		return NULL;
	log_reset();
	return bpf_link_detach(link->fd) ? throw_bpf_error(env, errno, "detach BPF link") : NULL;
}
