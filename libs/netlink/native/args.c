#include "args.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

static bool refuse(napi_env env, const char *name, const char *expected)
{
	char text[256];

	snprintf(text, sizeof(text), "%s must be %s", name, expected);
	napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", text);
	return false;
}

bool take_args(napi_env env, napi_callback_info info, size_t count, napi_value *out)
{
	size_t given = count;

	if (napi_get_cb_info(env, info, &given, out, NULL, NULL) == napi_ok && given >= count)
		return true;
	napi_throw_type_error(env, "ERR_MISSING_ARGS", "too few arguments");
	return false;
}

bool int_arg(napi_env env, napi_value value, const char *name, int64_t min, int64_t max, int64_t *out)
{
	double number;
	char expected[96];

	if (napi_get_value_double(env, value, &number) == napi_ok && number >= (double)min && number <= (double)max &&
	    (double)(int64_t)number == number) {
		*out = (int64_t)number;
		return true;
	}
	snprintf(expected, sizeof(expected), "an integer within %lld..%lld", (long long)min, (long long)max);
	return refuse(env, name, expected);
}

bool bool_arg(napi_env env, napi_value value, const char *name, bool *out)
{
	return napi_get_value_bool(env, value, out) == napi_ok || refuse(env, name, "a boolean");
}

bool string_arg(napi_env env, napi_value value, const char *name, char *out, size_t size)
{
	size_t length = 0;
	char expected[64];

	snprintf(expected, sizeof(expected), "a string of at most %zu bytes without NUL", size - 1);
	if (napi_get_value_string_utf8(env, value, NULL, 0, &length) != napi_ok || length >= size)
		return refuse(env, name, expected);
	napi_get_value_string_utf8(env, value, out, size, &length);
	return memchr(out, 0, length) == NULL || refuse(env, name, expected);
}

bool bytes_arg(napi_env env, napi_value value, const char *name, uint8_t **out, size_t *length)
{
	/* An empty array has no data; memcpy() and its like want an address all the same. */
	static uint8_t none;
	napi_typedarray_type type;
	bool is_array = false;
	void *data = NULL;

	if (napi_is_typedarray(env, value, &is_array) == napi_ok && is_array &&
	    napi_get_typedarray_info(env, value, &type, length, &data, NULL, NULL) == napi_ok && type == napi_uint8_array) {
		*out = data ? data : &none;
		return true;
	}
	return refuse(env, name, "a Uint8Array");
}

bool function_arg(napi_env env, napi_value value, const char *name)
{
	napi_valuetype type;

	return (napi_typeof(env, value, &type) == napi_ok && type == napi_function) || refuse(env, name, "a function");
}

napi_value throw_errno(napi_env env, int error, const char *what)
{
	napi_value code, message, number, exception;
	char name[32], text[320];

	uv_err_name_r(-error, name, sizeof(name));
	snprintf(text, sizeof(text), "%s: %s (%s)", what, strerror(error), name);
	napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &code);
	napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message);
	napi_create_error(env, code, message, &exception);
	napi_create_int32(env, error, &number);
	napi_set_named_property(env, exception, "errno", number);
	napi_throw(env, exception);
	return NULL;
}

bool optional_bytes_arg(napi_env env, napi_value value, const char *name, uint8_t **out, size_t *length)
{
	napi_valuetype type;

	*out = NULL;
	*length = 0;
	if (napi_typeof(env, value, &type) == napi_ok && (type == napi_null || type == napi_undefined))
		return true;
	return bytes_arg(env, value, name, out, length);
}
