#include "path_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

/* Where a raw socket's packet begins: IPv4 with its own header, IPv6 with UDP's. X is the offset of the UDP header. */
static const struct sock_filter TO_UDP_V4 = BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0);
static const struct sock_filter TO_UDP_V6 = BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 0);

enum { HEAD_LENGTH = 5, GROUP_PORTS = 200, MOST_GROUPS = (MOST_PATH_PORTS + GROUP_PORTS - 1) / GROUP_PORTS };

static int attach(int fd, const struct sock_fprog *filter)
{
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, filter, sizeof(*filter)) ? -errno : 0;
}

/*
 * Ports in groups that share an acceptance, which a jump (8 bits) reaches: an instruction each, also in the kernel's own form. There the
 * program is charged to the socket (net.core.optmem_max: 20 KiB before Linux 6.7).
 */
static void add_ports(struct sock_fprog *filter, const uint8_t *ports, size_t count)
{
	for (size_t begin = 0; begin < count; begin += GROUP_PORTS) {
		size_t size = count - begin < GROUP_PORTS ? count - begin : GROUP_PORTS;

		for (size_t i = 0; i < size; i++) {
			const uint8_t *port = ports + 2 * (begin + i);
			uint8_t to_acceptance = (uint8_t)(size - 1 - i);

			filter->filter[filter->len++] = (struct sock_filter)BPF_JUMP(
				BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)port[0] << 8 | port[1], to_acceptance, to_acceptance == 0);
		}
		filter->filter[filter->len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	}
}

int attach_path_filter(int fd, bool is_v4, uint32_t magic, const uint8_t *ports, size_t count)
{
	struct sock_filter nothing[] = { BPF_STMT(BPF_RET | BPF_K, 0) };
	struct sock_filter program[HEAD_LENGTH + MOST_PATH_PORTS + MOST_GROUPS + 1] = {
		is_v4 ? TO_UDP_V4 : TO_UDP_V6,
		/* A packet that ends before the four bytes is dropped by the load itself. */
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, magic, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
	};
	struct sock_fprog filter = { .len = HEAD_LENGTH, .filter = program };
	int error;

	if (count > MOST_PATH_PORTS)
		return -E2BIG;
	add_ports(&filter, ports, count);
	program[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	error = attach(fd, &filter);
	if (error != -ENOMEM)
		return error;
	/* The one of before is charged until the new one is there: it makes way, for one that takes nothing. */
	error = attach(fd, &(struct sock_fprog){ .len = 1, .filter = nothing });
	return error ? error : attach(fd, &filter);
}
