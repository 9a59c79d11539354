/* TUN devices: made to stay, and read and written by whoever is attached. */
#ifndef UNBOUNDED_NETLINK_TUN_H
#define UNBOUNDED_NETLINK_TUN_H

#include "args.h"

/* createTun(name, netnsFd): makes or adopts a persistent TUN: IFF_TUN | IFF_NO_PI | IFF_VNET_HDR. */
napi_value create_tun(napi_env env, napi_callback_info info);
/*
 * openTun(name, netnsFd, callback): attaches to one that is there, and makes none. The callback gets records: u16 length in
 * network order, the packet, and zeros up to the next multiple of 4.
 */
napi_value open_tun(napi_env env, napi_callback_info info);
/* injectPacket(handle, packet): 0 or the errno. */
napi_value inject_packet(napi_env env, napi_callback_info info);
/* closeTun(handle) */
napi_value close_tun(napi_env env, napi_callback_info info);

#endif
