#define _GNU_SOURCE
#include "packet.h"
#include "in_netns.h"
#include "reader.h"

#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	LONGEST_FRAME = 2048,
	LONGEST_RECORD = 2 + LONGEST_FRAME + 2,
	NEXT_HEADER_AT = ETH_HLEN + 6,
	ICMPV6_AT = ETH_HLEN + 40,
	NEIGHBOR_SOLICITATION = 135,
	NEIGHBOR_ADVERTISEMENT = 136,
};

struct packet_socket {
	struct reader reader;
	int link;
	int member; /* of the group; -1 without one */
};

struct packet_request {
	int link;
	uint16_t ether_type;
	const uint8_t *group;
	int member;
};

static const napi_type_tag PACKET_TAG = { 0x7061636b65742065ULL, 0x74686572206c616eULL };

/*
 * Frames of a VLAN without a device come, without their tag, to those who read the device below it: the kernel marks them as for another
 * host, whatever their destination (__netif_receive_skb_core).
 */
#define FOR_THIS_HOST                                                                                                  \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),                                   \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OTHERHOST, 0, 1), BPF_STMT(BPF_RET | BPF_K, 0)

static int attach_filter(int fd, bool is_ipv6)
{
	static struct sock_filter any[] = { FOR_THIS_HOST, BPF_STMT(BPF_RET | BPF_K, UINT32_MAX) };
	static struct sock_filter neighbors[] = {
		FOR_THIS_HOST,
		/* A frame that ends before a byte is dropped by the load itself. */
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, NEXT_HEADER_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_ICMPV6, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, ICMPV6_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NEIGHBOR_SOLICITATION, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NEIGHBOR_ADVERTISEMENT, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	struct sock_fprog filter = { .len = sizeof(any) / sizeof(any[0]), .filter = any };

	if (is_ipv6)
		filter = (struct sock_fprog){ .len = sizeof(neighbors) / sizeof(neighbors[0]), .filter = neighbors };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ? -errno : 0;
}

/*
 * As IPv6 joins: the device lets the group in, and switches that forward multicast to members alone hear of it (MLD), which a membership of
 * the packet socket itself would not tell them. Ends with the descriptor.
 */
static int join(struct packet_request *request)
{
	struct ipv6_mreq group = { .ipv6mr_interface = (unsigned int)request->link };
	int fd, error = 0;

	if (!request->group)
		return 0;
	fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	memcpy(&group.ipv6mr_multiaddr, request->group, sizeof(group.ipv6mr_multiaddr));
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &group, sizeof(group)))
		error = -errno;
	if (!error) {
		request->member = fd;
		return 0;
	}
	close(fd);
	return error;
}

/* Reading begins here, behind the filter. A device without Ethernet's addresses would be sent nonsense. */
static int bind_to(int fd, const struct packet_request *request)
{
	struct sockaddr_ll address = { .sll_family = AF_PACKET, .sll_ifindex = request->link,
				       .sll_protocol = htons(request->ether_type) };
	socklen_t size = sizeof(address);

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || getsockname(fd, (struct sockaddr *)&address, &size))
		return -errno;
	return address.sll_hatype == ARPHRD_ETHER ? 0 : -EMEDIUMTYPE;
}

static int new_packet(void *argument)
{
	struct packet_request *request = argument;
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	error = attach_filter(fd, request->ether_type == ETH_P_IPV6);
	if (!error)
		error = bind_to(fd, request);
	if (!error)
		error = join(request);
	if (!error)
		return fd;
	close(fd);
	return error;
}

static size_t drain(struct reader *reader)
{
	size_t used = 0;

	for (int reads = 0; reads < READER_MOST_READS && READER_BATCH - used >= LONGEST_RECORD; reads++) {
		uint8_t *record = reader->buffer + used;
		ssize_t got = recv(reader->fd, record + 2, LONGEST_FRAME, MSG_DONTWAIT | MSG_TRUNC);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			break; /* empty, or the device is down or gone */
		if (got == 0 || got > LONGEST_FRAME)
			continue;
		record[0] = (uint8_t)(got >> 8);
		record[1] = (uint8_t)got;
		for (used += 2 + (size_t)got; used % 4; used++)
			reader->buffer[used] = 0;
	}
	return used;
}

/* The device went down: when it is up again, reading goes on. */
static bool recovers(struct reader *reader)
{
	int error;
	socklen_t size = sizeof(error);

	getsockopt(reader->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	return true;
}

static void on_close(struct reader *reader)
{
	const struct packet_socket *sock = (struct packet_socket *)reader;

	if (sock->member >= 0)
		close(sock->member);
}

/* Takes over the descriptors, also when it fails: NULL with a pending exception. */
static struct packet_socket *on_loop(napi_env env, int fd, const struct packet_request *request, napi_value callback)
{
	struct packet_socket *sock = calloc(1, sizeof(*sock));

	if (!sock) {
		close(fd);
		if (request->member >= 0)
			close(request->member);
		throw_errno(env, ENOMEM, "watch packet socket");
		return NULL;
	}
	sock->reader.fd = fd;
	sock->reader.drain = drain;
	sock->reader.recovers = recovers;
	sock->reader.on_close = on_close;
	sock->link = request->link;
	sock->member = request->member;
	return start_reader(env, &sock->reader, "watch packet socket", callback) ? sock : NULL;
}

napi_value open_packet(napi_env env, napi_callback_info info)
{
	struct packet_request request = { .member = -1 };
	int64_t link, ether_type, netns_fd;
	struct packet_socket *sock;
	napi_value args[5];
	uint8_t *group;
	size_t length;
	int fd;

	if (!take_args(env, info, 5, args) || !int_arg(env, args[0], "link", 1, INT_MAX, &link) ||
	    !int_arg(env, args[1], "etherType", 0, UINT16_MAX, &ether_type) ||
	    !optional_bytes_arg(env, args[2], "group", &group, &length) ||
	    !int_arg(env, args[3], "netnsFd", -1, INT_MAX, &netns_fd) || !function_arg(env, args[4], "callback"))
		return NULL;
	if (group && length != sizeof(struct in6_addr)) {
		napi_throw_range_error(env, "ERR_OUT_OF_RANGE", "group must be an IPv6 multicast address");
		return NULL;
	}
	request.link = (int)link;
	request.ether_type = (uint16_t)ether_type;
	request.group = group;
	fd = in_netns((int)netns_fd, new_packet, &request);
	if (fd < 0)
		return throw_errno(env, -fd, "open packet socket");
	sock = on_loop(env, fd, &request, args[4]);
	return sock ? reader_handle(env, &sock->reader, &PACKET_TAG) : NULL;
}

/* Without a carrier the kernel drops frames and calls that a success. */
static int has_carrier(const struct packet_socket *sock)
{
	struct ifreq request = { .ifr_ifindex = sock->link };

	if (ioctl(sock->reader.fd, SIOCGIFNAME, &request) || ioctl(sock->reader.fd, SIOCGIFFLAGS, &request))
		return -errno;
	return request.ifr_flags & IFF_RUNNING ? 0 : -ENETDOWN;
}

static int send_out(const struct packet_socket *sock, const uint8_t *frame, size_t length)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = sock->link, .sll_halen = ETH_ALEN };
	int error = has_carrier(sock);

	memcpy(to.sll_addr, frame, ETH_ALEN);
	memcpy(&to.sll_protocol, frame + 2 * ETH_ALEN, sizeof(to.sll_protocol));
	if (!error && sendto(sock->reader.fd, frame, length, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		error = -errno;
	return error;
}

napi_value send_frame(napi_env env, napi_callback_info info)
{
	const struct packet_socket *sock;
	napi_value args[2];
	uint8_t *frame;
	size_t length;
	int error;

	if (!take_args(env, info, 2, args) ||
	    !(sock = (struct packet_socket *)reader_arg(env, args[0], &PACKET_TAG, "openPacket", false)) ||
	    !bytes_arg(env, args[1], "frame", &frame, &length))
		return NULL;
	if (length < ETH_HLEN || length > LONGEST_FRAME) {
		napi_throw_range_error(env, "ERR_OUT_OF_RANGE", "frame must have 14 to 2048 bytes");
		return NULL;
	}
	error = send_out(sock, frame, length);
	return error ? throw_errno(env, -error, "send frame") : NULL;
}

napi_value close_packet(napi_env env, napi_callback_info info)
{
	struct reader *reader;
	napi_value args[1];

	if (take_args(env, info, 1, args) && (reader = reader_arg(env, args[0], &PACKET_TAG, "openPacket", true)))
		end_reader(reader);
	return NULL;
}
