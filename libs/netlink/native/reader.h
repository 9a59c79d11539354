/* A descriptor that the event loop watches, and whose records one callback gets. */
#ifndef UNBOUNDED_NETLINK_READER_H
#define UNBOUNDED_NETLINK_READER_H

#include "args.h"

#include <uv.h>

enum {
	/* What one callback may carry; the rest comes at the next turn of the loop. */
	READER_BATCH = 1 << 16,
	/* Reads in one callback, also of what is passed over: a flood must not keep the thread from its timers. */
	READER_MOST_READS = 256,
};

/* Stands first in the structure of its owner, which is allocated with malloc and freed with it. */
struct reader {
	uv_poll_t poll;
	int fd;
	int references; /* the JavaScript handle and the poll handle: the last one frees */
	bool closing;
	napi_env env;
	napi_ref callback;
	napi_async_context async;
	napi_async_cleanup_hook_handle hook;
	uint8_t *buffer;
	/* Writes records to buffer, at most READER_BATCH bytes, and returns how many. */
	size_t (*drain)(struct reader *reader);
	/* After an error of the poll, which has stopped it: whether it is over and reading goes on. */
	bool (*recovers)(struct reader *reader);
	/* Closes what belongs to fd; may be NULL. */
	void (*on_close)(struct reader *reader);
};

/* Takes over fd and the structure, also when it fails: false with a pending exception. */
bool start_reader(napi_env env, struct reader *reader, const char *name, napi_value callback);
/* More than once is as once. */
void end_reader(struct reader *reader);
/* Wraps it as a JavaScript value, which ends it when it is collected. */
napi_value reader_handle(napi_env env, struct reader *reader, const napi_type_tag *tag);
/* What is behind such a value, or NULL with an exception that names where it comes from. */
struct reader *reader_arg(napi_env env, napi_value value, const napi_type_tag *tag, const char *origin, bool may_be_closed);

#endif
