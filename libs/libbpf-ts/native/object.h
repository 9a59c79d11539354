/* ELF objects: what they declare, and loading them. */
#ifndef LIBBPF_TS_OBJECT_H
#define LIBBPF_TS_OBJECT_H

#include "args.h"

/* readObject(bytes): {maps: [{name, type, keySize, …}], programs: [{name, section}], constants: [{name, size}]} */
napi_value read_object(napi_env env, napi_callback_info info);
/*
 * loadObject(bytes, name, maps, constants, programs)
 * maps: {[name]: {maxEntries?, pinPath?}}; constants: {[name]: Uint8Array}; programs: names or null for all.
 * Returns {maps: [{name, handle}], programs: [{name, handle}]}; the handles own what they stand for.
 */
napi_value load_object(napi_env env, napi_callback_info info);

#endif
