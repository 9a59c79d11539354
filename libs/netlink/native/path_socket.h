/* Probes of a path from a UDP port that is somebody else's (WireGuard's): a raw socket on Node's event loop. */
#ifndef UNBOUNDED_NETLINK_PATH_SOCKET_H
#define UNBOUNDED_NETLINK_PATH_SOCKET_H

#include "args.h"

/*
 * openPathSocket(family, netnsFd, magic, callback): handle; family is 4 or 6, needs CAP_NET_RAW.
 * callback(bytes): datagrams one after another, each u16 payload length, u16 source port, u16 local port, u16 0 (big-endian),
 * 16 bytes source address, 16 bytes local address (IPv4 in the first four), payload padded to 4 bytes.
 */
napi_value open_path_socket(napi_env env, napi_callback_info info);
/* setPathPorts(handle, ports): u16 big-endian each; what comes to another port, or does not begin with the magic, ends
 * in the socket's filter. None at first. */
napi_value set_path_ports(napi_env env, napi_callback_info info);
/*
 * sendPathProbe(handle, to, from, ports, payload): errno, 0 when it was sent. to: 4 or 16 bytes; from: as many, or none for
 * the kernel's choice; ports: u16 source, u16 destination, big-endian.
 */
napi_value send_path_probe(napi_env env, napi_callback_info info);
/* closePathSocket(handle): may be called twice. */
napi_value close_path_socket(napi_env env, napi_callback_info info);

#endif
