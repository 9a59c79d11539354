/* Ring buffers on Node's event loop. */
#ifndef LIBBPF_TS_RING_H
#define LIBBPF_TS_RING_H

#include "args.h"

/*
 * openRing(map, callback): ring; callback(bytes) gets all records of a wake-up in one buffer: each a u32 length, u32
 * zero, the record, padding to 8 bytes.
 */
napi_value open_ring(napi_env env, napi_callback_info info);
napi_value consume_ring(napi_env env, napi_callback_info info); /* (ring): drains now */
napi_value hold_ring(napi_env env, napi_callback_info info);	/* (ring, on): keeps the process alive? */
napi_value close_ring(napi_env env, napi_callback_info info);	/* (ring): may be called twice */

#endif
