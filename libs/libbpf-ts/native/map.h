/* Map operations. Buffers are checked against the sizes that the kernel has for the map. */
#ifndef LIBBPF_TS_MAP_H
#define LIBBPF_TS_MAP_H

#include "args.h"

napi_value map_lookup(napi_env env, napi_callback_info info);	    /* (map, key, value out): boolean */
napi_value map_update(napi_env env, napi_callback_info info);	    /* (map, key, value, flags) */
napi_value map_delete(napi_env env, napi_callback_info info);	    /* (map, key): boolean */
napi_value map_next_key(napi_env env, napi_callback_info info);	    /* (map, key | null, next out): boolean */
napi_value map_update_batch(napi_env env, napi_callback_info info); /* (map, keys, values, count, flags): [errno, done] */
napi_value map_delete_batch(napi_env env, napi_callback_info info); /* (map, keys, count): [errno, done] */
/* (map, cursor in | null, cursor out, keys out, values out, count): [errno, count]; ENOENT is the last page */
napi_value map_lookup_batch(napi_env env, napi_callback_info info);

#endif
