/* A netlink socket on Node's event loop. */
#ifndef UNBOUNDED_NETLINK_SOCKET_H
#define UNBOUNDED_NETLINK_SOCKET_H

#include "args.h"

/*
 * openSocket(protocol, netnsFd, bufferBytes, callback): handle; the buffer size is for each direction
 * callback(bytes, errno, writable): whole datagrams one after another, each padded to 4 bytes; errno 0, ENOBUFS (the
 * kernel lost messages for us; the socket goes on) or what made the socket useless; writable after a refused send.
 */
napi_value open_socket(napi_env env, napi_callback_info info);
/* sendBytes(handle, bytes): false when the socket is full; callback(…, true) follows when it is not. */
napi_value send_bytes(napi_env env, napi_callback_info info);
/* setMembership(handle, group, join) */
napi_value set_membership(napi_env env, napi_callback_info info);
/* holdLoop(handle, on): does the socket keep the process alive? */
napi_value hold_loop(napi_env env, napi_callback_info info);
/* netnsOf(handle): a new fd of the namespace the socket is in. */
napi_value netns_of(napi_env env, napi_callback_info info);
/* closeSocket(handle): may be called twice. */
napi_value close_socket(napi_env env, napi_callback_info info);

#endif
