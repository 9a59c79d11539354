/* Arguments from JavaScript: each is checked for type and range, and a refusal says its name and what would be right.
 * Also compiled into the addon of libbpf-ts. */
#ifndef UNBOUNDED_NETLINK_ARGS_H
#define UNBOUNDED_NETLINK_ARGS_H

#define NAPI_VERSION 9
#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return false (or NULL) with a pending JavaScript exception. */
bool take_args(napi_env env, napi_callback_info info, size_t count, napi_value *out);
bool int_arg(napi_env env, napi_value value, const char *name, int64_t min, int64_t max, int64_t *out);
bool bool_arg(napi_env env, napi_value value, const char *name, bool *out);
/* At most size - 1 bytes, no NUL inside. */
bool string_arg(napi_env env, napi_value value, const char *name, char *out, size_t size);
/* *out is never NULL, also when there are no bytes. */
bool bytes_arg(napi_env env, napi_value value, const char *name, uint8_t **out, size_t *length);
bool function_arg(napi_env env, napi_value value, const char *name);
/* NULL or undefined leave *out NULL and *length 0. */
bool optional_bytes_arg(napi_env env, napi_value value, const char *name, uint8_t **out, size_t *length);

/* Throws an Error with `errno`, `code` ("ENODEV") and the text "what: meaning". Returns NULL. */
napi_value throw_errno(napi_env env, int error, const char *what);

#endif
