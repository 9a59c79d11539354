/* Network namespaces. */
#ifndef UNBOUNDED_NETLINK_NETNS_H
#define UNBOUNDED_NETLINK_NETNS_H

#include "args.h"

/* createNetns(path): fd of a new namespace; "" leaves it anonymous, else it is bound to that (new) file. */
napi_value create_netns(napi_env env, napi_callback_info info);

#endif
