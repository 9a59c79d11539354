/* Whole Ethernet frames out of and into one device: what ARP and neighbor discovery are spoken by, for addresses that no device has. */
#ifndef UNBOUNDED_NETLINK_PACKET_H
#define UNBOUNDED_NETLINK_PACKET_H

#include "args.h"

/*
 * openPacket(link, etherType, group, netnsFd, callback): handle; needs CAP_NET_RAW. etherType 0 reads nothing; of 0x86dd only neighbor
 * solicitations and advertisements are read; frames of a VLAN or to another host never. group: 16 bytes of an IPv6 multicast address that the
 * device is a member of while the socket is open, or none. The callback gets records: u16 length in network order, the frame, and zeros up to the next multiple of 4.
 */
napi_value open_packet(napi_env env, napi_callback_info info);
/* sendFrame(handle, frame): throws what the kernel says, and ENETDOWN also where there is no carrier. */
napi_value send_frame(napi_env env, napi_callback_info info);
/* closePacket(handle): may be called twice. */
napi_value close_packet(napi_env env, napi_callback_info info);

#endif
