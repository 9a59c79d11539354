/* What libbpf and the verifier say, kept for the error of the call they belong to. */
#ifndef LIBBPF_TS_LOG_H
#define LIBBPF_TS_LOG_H

#include "args.h"

void log_install(void);
/* Forgets what was said before. Called at the start of every call that may fail with words. */
void log_reset(void);
/* Throws an Error with `errno`, `code`, `log` (the last 16 KiB) and the text "what: meaning". Returns NULL. */
napi_value throw_bpf_error(napi_env env, int error, const char *what);

#endif
