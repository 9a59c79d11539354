/* setns */
#define _GNU_SOURCE
#include "interfaces.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for IFA_LOCAL and IFA_ADDRESS. */
#define ATTRIBUTES_SIZE (2 * RTA_SPACE(ADDRESS_SIZE))

struct address_message {
	struct nlmsghdr header;
	struct ifaddrmsg address;
	unsigned char attributes[ATTRIBUTES_SIZE];
};

struct link_message {
	struct nlmsghdr header;
	struct ifinfomsg link;
};

/* What the kernel answers; the message that it repeats behind it is cut off. */
struct acknowledgement {
	struct nlmsghdr header;
	int error;
};

static int enter(const char *netns)
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return -1;
	error = setns(fd, CLONE_NEWNET);
	close(fd);
	return error;
}

/* A connected socket takes messages of the kernel alone. */
static int open_rtnetlink(void)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&kernel, sizeof(kernel))) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Sends a message and reads its acknowledgement. Returns 0, or -1 with the kernel's errno. */
static int apply(int fd, struct nlmsghdr *header)
{
	static unsigned int sequence;
	struct acknowledgement reply;
	ssize_t n;

	header->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	header->nlmsg_seq = ++sequence;
	if (send(fd, header, header->nlmsg_len, 0) < 0)
		return -1;
	/* rtnetlink works within send: the acknowledgement is there, and nothing is waited for. */
	n = recv(fd, &reply, sizeof(reply), MSG_DONTWAIT);
	if (n < 0)
		return -1;
	if ((size_t)n < sizeof(reply) || reply.header.nlmsg_type != NLMSG_ERROR || reply.header.nlmsg_seq != sequence)
		reply.error = -EPROTO;
	errno = -reply.error;
	return reply.error ? -1 : 0;
}

static void put_attribute(struct address_message *message, unsigned short type, const unsigned char *bytes, size_t length)
{
	const struct rtattr attribute = {.rta_len = (unsigned short)RTA_LENGTH(length), .rta_type = type};
	unsigned char *at = (unsigned char *)message + message->header.nlmsg_len;

	memcpy(at, &attribute, sizeof(attribute));
	memcpy(at + sizeof(attribute), bytes, length);
	message->header.nlmsg_len += (unsigned int)RTA_SPACE(length);
}

static int add_address(int fd, unsigned int index, const struct pod_address *address)
{
	size_t length = address->family == 4 ? 4 : 16;
	struct address_message message = {
		.header = {
			.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg)),
			.nlmsg_type = RTM_NEWADDR,
			/* ADD may come again. */
			.nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE,
		},
		.address = {
			.ifa_family = address->family == 4 ? AF_INET : AF_INET6,
			.ifa_prefixlen = address->prefix_length,
			/* The address was claimed at the API server: no duplicate to be detected, and the pod can use it at once. */
			.ifa_flags = address->family == 4 ? 0 : IFA_F_NODAD,
			.ifa_index = index,
		},
	};

	put_attribute(&message, IFA_LOCAL, address->bytes, length);
	put_attribute(&message, IFA_ADDRESS, address->bytes, length);
	return apply(fd, &message.header);
}

static int set_up(int fd, unsigned int index)
{
	struct link_message message = {
		.header = {.nlmsg_len = sizeof(message), .nlmsg_type = RTM_NEWLINK},
		.link = {.ifi_index = (int)index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP},
	};

	return apply(fd, &message.header);
}

static int describe_address(const struct pod_interface *interface, const struct pod_address *address, char *problem)
{
	char text[INET6_ADDRSTRLEN] = "";
	int error = errno;

	inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, text, sizeof(text));
	snprintf(problem, PROBLEM_SIZE, "interface %s, address %s/%d: %s", interface->name, text, address->prefix_length,
		 strerror(error));
	return -1;
}

static int describe(const struct pod_interface *interface, char *problem)
{
	snprintf(problem, PROBLEM_SIZE, "interface %s: %s", interface->name, strerror(errno));
	return -1;
}

/*
 * Some runtimes, and the kernel's parameter ipv6.disable_ipv6, begin namespaces without IPv6. Where that cannot be changed the kernel refuses the
 * address, if it has to.
 */
static void allow_ipv6(const char *name)
{
	char path[64 + NAME_SIZE];
	ssize_t written;
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	written = write(fd, "0", 1);
	(void)written;
	close(fd);
}

static int settle_interface(int fd, const struct pod_interface *interface, char *problem)
{
	unsigned int index = if_nametoindex(interface->name);

	if (!index)
		return describe(interface, problem);
	for (size_t i = 0; i < interface->address_count; i++) {
		if (interface->addresses[i].family == 6)
			allow_ipv6(interface->name);
		if (add_address(fd, index, &interface->addresses[i]))
			return describe_address(interface, &interface->addresses[i], problem);
	}
	return set_up(fd, index) ? describe(interface, problem) : 0;
}

int settle_interfaces(const char *netns, const struct answer *answer, char problem[PROBLEM_SIZE])
{
	int fd = -1, error = 0;

	if (!netns || !*netns) {
		snprintf(problem, PROBLEM_SIZE, "CNI_NETNS is not set");
		return -1;
	}
	if (!enter(netns))
		fd = open_rtnetlink();
	if (fd < 0) {
		snprintf(problem, PROBLEM_SIZE, "network namespace %s: %s", netns, strerror(errno));
		return -1;
	}
	for (size_t i = 0; i < answer->interface_count && !error; i++)
		error = settle_interface(fd, &answer->interfaces[i], problem);
	close(fd);
	return error;
}
