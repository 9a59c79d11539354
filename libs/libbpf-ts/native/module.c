/* The addon's exports. It has no policy: sizes and kinds are checked here, everything else in TypeScript. */
#define _GNU_SOURCE
#include "args.h"
#include "handle.h"
#include "log.h"
#include "map.h"
#include "object.h"
#include "program.h"
#include "ring.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <limits.h>
#include <sys/mount.h>

/* possibleCpus() */
static napi_value possible_cpus(napi_env env, napi_callback_info info)
{
	napi_value value;

	(void)info;
	napi_create_int32(env, libbpf_num_possible_cpus(), &value);
	return value;
}

/* mountBpffs(path): for root only */
static napi_value mount_bpffs(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	char path[PATH_MAX];

	if (!take_args(env, info, 1, args) || !string_arg(env, args[0], "path", path, sizeof(path)))
		return NULL;
	log_reset();
	return mount("bpf", path, "bpf", 0, "mode=0700") ? throw_bpf_error(env, errno, "mount bpffs") : NULL;
}

/* unmount(path): lazily */
static napi_value unmount(napi_env env, napi_callback_info info)
{
	napi_value args[1];
	char path[PATH_MAX];

	if (!take_args(env, info, 1, args) || !string_arg(env, args[0], "path", path, sizeof(path)))
		return NULL;
	log_reset();
	return umount2(path, MNT_DETACH) ? throw_bpf_error(env, errno, "unmount") : NULL;
}

#define EXPORT(js_name, function) { js_name, NULL, function, NULL, NULL, NULL, napi_enumerable, NULL }

NAPI_MODULE_INIT()
{
	napi_property_descriptor functions[] = {
		EXPORT("readObject", read_object),	  EXPORT("loadObject", load_object),
		EXPORT("closeHandle", close_handle),	  EXPORT("pinHandle", pin_handle),
		EXPORT("openPinned", open_pinned),	  EXPORT("handleInfo", handle_info),
		EXPORT("mapLookup", map_lookup),	  EXPORT("mapUpdate", map_update),
		EXPORT("mapDelete", map_delete),	  EXPORT("mapNextKey", map_next_key),
		EXPORT("mapUpdateBatch", map_update_batch), EXPORT("mapDeleteBatch", map_delete_batch),
		EXPORT("mapLookupBatch", map_lookup_batch), EXPORT("testRun", test_run),
		EXPORT("attachTcx", attach_tcx),	  EXPORT("attachClsact", attach_clsact),
		EXPORT("detachClsact", detach_clsact),	  EXPORT("queryClsact", query_clsact),
		EXPORT("updateLink", update_link),	  EXPORT("detachLink", detach_link),
		EXPORT("openRing", open_ring),		  EXPORT("consumeRing", consume_ring),
		EXPORT("holdRing", hold_ring),		  EXPORT("closeRing", close_ring),
		EXPORT("possibleCpus", possible_cpus),	  EXPORT("mountBpffs", mount_bpffs),
		EXPORT("unmount", unmount),
	};

	log_install();
	napi_define_properties(env, exports, sizeof(functions) / sizeof(functions[0]), functions);
	return exports;
}
