#include "path_filter.h"

#include <errno.h>
#include <linux/filter.h>
#include <sys/socket.h>

/* Where a raw socket's packet begins: IPv4 with its own header, IPv6 with UDP's. X is the offset of the UDP header. */
static const struct sock_filter TO_UDP_V4 = BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0);
static const struct sock_filter TO_UDP_V6 = BPF_STMT(BPF_LDX | BPF_W | BPF_IMM, 0);

int attach_path_filter(int fd, bool is_v4, uint32_t magic, const uint8_t *ports, size_t count)
{
	struct sock_filter program[6 + 2 * MOST_PATH_PORTS] = {
		is_v4 ? TO_UDP_V4 : TO_UDP_V6,
		/* A packet that ends before the four bytes is dropped by the load itself. */
		BPF_STMT(BPF_LD | BPF_W | BPF_IND, 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, magic, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
	};
	struct sock_fprog filter = { .len = 5, .filter = program };

	if (count > MOST_PATH_PORTS)
		return -E2BIG;
	for (size_t i = 0; i < count; i++) {
		uint32_t port = (uint32_t)ports[2 * i] << 8 | ports[2 * i + 1];

		program[filter.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 1);
		program[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffffffff);
	}
	program[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ? -errno : 0;
}
