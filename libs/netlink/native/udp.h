/* UDP sockets with options that Node's own cannot be given. */
#ifndef UNBOUNDED_NETLINK_UDP_H
#define UNBOUNDED_NETLINK_UDP_H

#include "args.h"

/* (address: string, port, netnsFd) -> fd, bound and non-blocking. */
napi_value open_udp(napi_env env, napi_callback_info info);

#endif
