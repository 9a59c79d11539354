/* Work inside another network namespace. */
#ifndef UNBOUNDED_NETLINK_NETNS_H
#define UNBOUNDED_NETLINK_NETNS_H

#include "args.h"

/*
 * Runs work(argument) on a short thread that entered the namespace first, and waits for it. The calling thread never
 * changes its namespace: libuv's pool threads would stay behind, and the process would live in two namespaces.
 * netns_fd -1 stays in the caller's namespace (and needs no thread). Returns work's result (>= 0) or -errno.
 */
int in_netns(int netns_fd, int (*work)(void *argument), void *argument);

/* createNetns(path): fd of a new namespace; "" leaves it anonymous, else it is bound to that (new) file. */
napi_value create_netns(napi_env env, napi_callback_info info);
/* createTun(name, netnsFd): makes or adopts a persistent TUN: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR. */
napi_value create_tun(napi_env env, napi_callback_info info);

#endif
