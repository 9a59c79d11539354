/* The addon's exports: netlink sockets and what needs another network namespace. */
#include "args.h"
#include "netns.h"
#include "packet.h"
#include "path_socket.h"
#include "socket.h"
#include "tun.h"
#include "udp.h"

#define EXPORT(js_name, function) { js_name, NULL, function, NULL, NULL, NULL, napi_enumerable, NULL }

NAPI_MODULE_INIT()
{
	napi_property_descriptor functions[] = {
		EXPORT("openSocket", open_socket),       EXPORT("sendBytes", send_bytes),
		EXPORT("setMembership", set_membership), EXPORT("holdLoop", hold_loop),
		EXPORT("netnsOf", netns_of),             EXPORT("closeSocket", close_socket),
		EXPORT("createNetns", create_netns),     EXPORT("createTun", create_tun),
		EXPORT("openUdp", open_udp),             EXPORT("openPathSocket", open_path_socket),
		EXPORT("setPathPorts", set_path_ports),  EXPORT("sendPathProbe", send_path_probe),
		EXPORT("closePathSocket", close_path_socket),
		EXPORT("openTun", open_tun),             EXPORT("injectPacket", inject_packet),
		EXPORT("closeTun", close_tun),           EXPORT("openPacket", open_packet),
		EXPORT("sendFrame", send_frame),         EXPORT("closePacket", close_packet),
	};

	napi_define_properties(env, exports, sizeof(functions) / sizeof(functions[0]), functions);
	return exports;
}
