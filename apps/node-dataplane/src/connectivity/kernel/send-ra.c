/* Sends one router advertisement (RFC 4861, 4.2) to all nodes from the link-local address of a device: send-ra DEVICE LIFETIME_SECONDS */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	int fd = socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
	if (fd < 0) {
		perror("socket");
		return 1;
	}
	int index = (int)if_nametoindex(argv[1]);
	int hops = 255; /* receivers drop others: they came through a router */
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof(index)) ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops))) {
		perror("setsockopt");
		return 1;
	}
	struct nd_router_advert ra;
	memset(&ra, 0, sizeof(ra));
	ra.nd_ra_type = ND_ROUTER_ADVERT;
	ra.nd_ra_router_lifetime = htons((unsigned short)atoi(argv[2]));
	struct sockaddr_in6 to;
	memset(&to, 0, sizeof(to));
	to.sin6_family = AF_INET6;
	to.sin6_scope_id = (unsigned)index;
	inet_pton(AF_INET6, "ff02::1", &to.sin6_addr);
	if (sendto(fd, &ra, sizeof(ra), 0, (struct sockaddr *)&to, sizeof(to)) < 0) {
		perror("sendto");
		return 1;
	}
	return 0;
}
