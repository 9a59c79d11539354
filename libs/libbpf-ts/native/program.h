/* Programs: test runs and attachments. */
#ifndef LIBBPF_TS_PROGRAM_H
#define LIBBPF_TS_PROGRAM_H

#include "args.h"

/* testRun(program, data | null, context | null, repeat): {returnValue, data, context, nanoseconds} */
napi_value test_run(napi_env env, napi_callback_info info);
/* attachTcx(program, ifindex, egress, netnsFd): link handle */
napi_value attach_tcx(napi_env env, napi_callback_info info);
/* attachClsact(program, ifindex, egress, handle, priority, netnsFd); makes the clsact qdisc where there is none */
napi_value attach_clsact(napi_env env, napi_callback_info info);
/* detachClsact(ifindex, egress, handle, priority, netnsFd): false if there was none; the qdisc stays */
napi_value detach_clsact(napi_env env, napi_callback_info info);
/* queryClsact(ifindex, egress, handle, priority, netnsFd): id of the filter's program; 0 if there is no such filter */
napi_value query_clsact(napi_env env, napi_callback_info info);
/* updateLink(link, program) */
napi_value update_link(napi_env env, napi_callback_info info);
/* detachLink(link) */
napi_value detach_link(napi_env env, napi_callback_info info);

#endif
