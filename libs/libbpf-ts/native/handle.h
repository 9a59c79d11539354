/* BPF file descriptors as JavaScript handles: typed, closed once, closed by the garbage collector at the latest. */
#ifndef LIBBPF_TS_HANDLE_H
#define LIBBPF_TS_HANDLE_H

#include "args.h"

enum handle_kind { HANDLE_MAP = 1, HANDLE_PROGRAM, HANDLE_LINK };

struct handle {
	enum handle_kind kind;
	int fd; /* -1: closed */
	/* Of maps, as the kernel says: what its system calls copy, whatever the caller's buffers hold. */
	uint32_t map_type, key_size, value_size, max_entries;
	/* Bytes of one value in user space: for per-CPU maps value_size rounded up to 8, times the possible CPUs. */
	uint32_t value_bytes;
};

/* Takes over fd, also when it fails (then NULL with an exception). */
napi_value new_handle(napi_env env, enum handle_kind kind, int fd);
/* The open handle of this kind, or NULL with a TypeError (another kind) or an Error (closed). */
struct handle *handle_arg(napi_env env, napi_value value, enum handle_kind kind);
/* closeHandle(handle): of any kind; may be called twice. */
napi_value close_handle(napi_env env, napi_callback_info info);
/* pinHandle(handle, path) */
napi_value pin_handle(napi_env env, napi_callback_info info);
/* openPinned(kind, path): handle. A TypeError if something else is pinned there. */
napi_value open_pinned(napi_env env, napi_callback_info info);
/* handleInfo(handle): {id, name, type, …} by kind */
napi_value handle_info(napi_env env, napi_callback_info info);

#endif
