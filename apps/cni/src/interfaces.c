/* setns */
#define _GNU_SOURCE
#include "interfaces.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define ANSWER_SECONDS 10

struct message {
	struct nlmsghdr header;
	union {
		struct ifaddrmsg address;
		struct ifinfomsg link;
	} body;
	unsigned char attributes[2 * RTA_SPACE(SETTLE_ADDRESS_BYTES) + RTA_SPACE(sizeof(uint32_t))];
};

static void put_attribute(struct message *message, unsigned short type, const void *data, size_t size)
{
	struct rtattr *attribute = (struct rtattr *)((char *)message + NLMSG_ALIGN(message->header.nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = (unsigned short)RTA_LENGTH(size);
	memcpy(RTA_DATA(attribute), data, size);
	message->header.nlmsg_len = (uint32_t)(NLMSG_ALIGN(message->header.nlmsg_len) + RTA_SPACE(size));
}

/* Sends one request and reads its acknowledgement. Returns 0 or an errno. */
static int request(int fd, struct message *message)
{
	union {
		struct nlmsghdr header;
		char bytes[512];
	} answer;
	struct nlmsgerr *error = NLMSG_DATA(&answer.header);
	ssize_t n;

	message->header.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	if (send(fd, message, message->header.nlmsg_len, 0) < 0)
		return errno;
	do
		n = recv(fd, &answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno;
	if (n < (ssize_t)NLMSG_LENGTH(sizeof(*error)) || answer.header.nlmsg_type != NLMSG_ERROR)
		return EPROTO;
	return -error->error;
}

static int add_address(int fd, unsigned int index, const struct settle_address *address)
{
	struct message message = {.header = {.nlmsg_type = RTM_NEWADDR, .nlmsg_flags = NLM_F_CREATE | NLM_F_REPLACE}};
	size_t size = address->family == 4 ? 4 : SETTLE_ADDRESS_BYTES;
	uint32_t flags = IFA_F_NODAD; /* it was claimed where all nodes see it */

	message.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg));
	message.body.address.ifa_family = address->family == 4 ? AF_INET : AF_INET6;
	message.body.address.ifa_prefixlen = address->length;
	message.body.address.ifa_index = index;
	put_attribute(&message, IFA_LOCAL, address->bytes, size);
	put_attribute(&message, IFA_ADDRESS, address->bytes, size);
	if (address->family == 6)
		put_attribute(&message, IFA_FLAGS, &flags, sizeof(flags));
	return request(fd, &message);
}

static int set_up(int fd, unsigned int index)
{
	struct message message = {.header = {.nlmsg_type = RTM_NEWLINK}};

	message.header.nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg));
	message.body.link.ifi_index = (int)index;
	message.body.link.ifi_flags = IFF_UP;
	message.body.link.ifi_change = IFF_UP;
	return request(fd, &message);
}

static int explain(char problem[SETTLE_PROBLEM], const char *what, const char *name, int error)
{
	snprintf(problem, SETTLE_PROBLEM, "%s %s: %s", what, name, strerror(error));
	return -1;
}

static int settle_interface(int fd, const struct settle_interface *interface, char problem[SETTLE_PROBLEM])
{
	unsigned int index = if_nametoindex(interface->name);
	int error;

	if (!index)
		return explain(problem, "no interface", interface->name, errno);
	for (int i = 0; i < interface->count; i++) {
		error = add_address(fd, index, &interface->addresses[i]);
		if (error)
			return explain(problem, "an address of", interface->name, error);
	}
	error = set_up(fd, index);
	return error ? explain(problem, "setting up", interface->name, error) : 0;
}

static int enter(const char *netns, char problem[SETTLE_PROBLEM])
{
	int fd = open(netns, O_RDONLY | O_CLOEXEC), error;

	if (fd < 0)
		return explain(problem, "network namespace", netns, errno);
	error = setns(fd, CLONE_NEWNET) ? errno : 0;
	close(fd);
	return error ? explain(problem, "network namespace", netns, error) : 0;
}

int settle_interfaces(const char *netns, const struct settle *settle, char problem[SETTLE_PROBLEM])
{
	struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	int fd, result = 0;

	if (enter(netns, problem))
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return explain(problem, "netlink", "", errno);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (int i = 0; i < settle->count && !result; i++)
		result = settle_interface(fd, &settle->interfaces[i], problem);
	close(fd);
	return result;
}
