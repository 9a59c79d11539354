#include "log.h"

#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { LOG_BYTES = 16384, LINE_BYTES = 8192 };

/* Each thread (worker) has its own calls, so its own words. The last LOG_BYTES are kept: the verifier ends with why. */
static _Thread_local char words[LOG_BYTES];
static _Thread_local size_t used;

static int keep(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[LINE_BYTES];
	int length;

	if (level == LIBBPF_DEBUG)
		return 0;
	length = vsnprintf(line, sizeof(line), format, args);
	if (length <= 0)
		return 0;
	if ((size_t)length >= sizeof(line))
		length = sizeof(line) - 1;
	if (used + (size_t)length >= sizeof(words)) {
		size_t drop = used + (size_t)length + 1 - sizeof(words);

		memmove(words, words + drop, used - drop);
		used -= drop;
	}
	memcpy(words + used, line, (size_t)length);
	used += (size_t)length;
	words[used] = 0;
	return 0;
}

void log_install(void)
{
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(keep);
}

void log_reset(void)
{
	used = 0;
	words[0] = 0;
}

napi_value throw_bpf_error(napi_env env, int error, const char *what)
{
	napi_value code, message, number, log, exception;
	char name[32], text[320];

	uv_err_name_r(-error, name, sizeof(name));
	snprintf(text, sizeof(text), "%s: %s (%s)", what, strerror(error), name);
	napi_create_string_utf8(env, name, NAPI_AUTO_LENGTH, &code);
	napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &message);
	/* The log's first character may be the rest of one that was cut: latin1 takes any byte. */
	napi_create_string_latin1(env, words, used, &log);
	napi_create_error(env, code, message, &exception);
	napi_create_int32(env, error, &number);
	napi_set_named_property(env, exception, "errno", number);
	napi_set_named_property(env, exception, "log", log);
	napi_throw(env, exception);
	return NULL;
}
