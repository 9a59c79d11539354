/* Namespaces, and the device that lives in one. */
#ifndef UNBOUNDED_NETLINK_NETNS_H
#define UNBOUNDED_NETLINK_NETNS_H

#include "args.h"

/* createNetns(path): fd of a new namespace; "" leaves it anonymous, else it is bound to that (new) file. */
napi_value create_netns(napi_env env, napi_callback_info info);
/* createTun(name, netnsFd): makes or adopts a persistent TUN: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR. */
napi_value create_tun(napi_env env, napi_callback_info info);

#endif
