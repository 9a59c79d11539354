/*
 * pod-start - runs a program that has to do with a pod's network namespace, with the right for that one thing and no other.
 *
 *   pod-start network NETNS PROGRAM [ARGUMENT]...     PROGRAM is in the namespace, and may change interfaces and routes there
 *   pod-start tun NETNS TUN PROGRAM [ARGUMENT]...     PROGRAM is where it was, without rights, and has the packets of a TUN there
 *
 * Entering a pod's namespace takes CAP_SYS_ADMIN, and this program alone has it: it goes there and gives it up for good, before PROGRAM
 * is run. "network" keeps CAP_NET_ADMIN. "tun" opens the TUN, which is possible only for who is in its namespace, comes back, and gives
 * up everything; PROGRAM has the TUN as file descriptor 3. The TUN must be there, and be persistent: it outlives PROGRAM, with its index,
 * addresses and routes. The namespace of the process itself, which is the node's, is refused.
 *
 * Beside PROGRAM of "tun" runs "pod-start buffers" until PROGRAM ends. It has CAP_NET_ADMIN, and does one thing for PROGRAM, which may not:
 * UDP sockets that come by the socket that PROGRAM has as file descriptor 4 get buffers that hold a flow while PROGRAM waits for a
 * processor. The kernel's own limit (net.core.rmem_max) is 208 KiB, which are full after some hundred packets.
 */
#define _GNU_SOURCE /* setns */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TUN_FD = 3, BUFFERS_FD = 4 };

/* Bytes that a UDP socket may hold in each direction, as tailscaled asks for, and sockets that get as much at once; one a second follows. */
enum { BUFFER_BYTES = 7 << 20, AT_ONCE = 8 };

static int fail(const char *what, const char *advice)
{
	fprintf(stderr, "pod-start: %s: %s%s\n", what, strerror(errno), advice);
	return 1;
}

/* The namespace that the process leaves, open for the way back; negative when there is none to enter. */
static int enter(const char *path)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = open(path, O_RDONLY | O_CLOEXEC);
	struct stat own_stat, there_stat;

	if (own < 0 || there < 0 || fstat(own, &own_stat) || fstat(there, &there_stat))
		return -1;
	if (own_stat.st_dev == there_stat.st_dev && own_stat.st_ino == there_stat.st_ino) {
		errno = EEXIST; /* we are there: it is the node's */
		return -1;
	}
	return setns(there, CLONE_NEWNET) || close(there) ? -1 : own;
}

/* Opens the TUN in the namespace that the process is in. One that is not there is not made: the kernel would, and it would not last. */
static int open_tun(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR };
	int fd;

	if (strlen(name) >= sizeof(request.ifr_name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(request.ifr_name, name);
	if (!if_nametoindex(name))
		return -1;
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, TUNSETIFF, &request))
		return -1;
	return fd;
}

/* Of all capabilities the process keeps one, over executions too, or none (capability -1). Under no_new_privs it never gets others. */
static int keep_only(int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (capability >= 0) {
		unsigned int bit = 1U << (capability % 32);

		kept[capability / 32] = (struct __user_cap_data_struct){ .effective = bit, .permitted = bit, .inheritable = bit };
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) ||
	    syscall(SYS_capset, &header, kept))
		return -1;
	return capability < 0 ? 0 : prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
}

static int is_udp(int fd)
{
	int domain = 0, protocol = 0;
	socklen_t length = sizeof(domain);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) && (domain == AF_INET || domain == AF_INET6) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) && protocol == IPPROTO_UDP;
}

/* The descriptor that came with a message; negative: none came, or nobody is left who could send one. Of several the first counts. */
static int receive_fd(int from, int *is_over)
{
	enum { MOST = 2 }; /* as the kernel aligns the space for one, two fit */
	char data;
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec bytes = { .iov_base = &data, .iov_len = sizeof(data) };
	struct msghdr message = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	struct cmsghdr *first;
	int fds[MOST] = { -1, -1 };
	size_t count;

	*is_over = recvmsg(from, &message, MSG_CMSG_CLOEXEC) <= 0;
	first = *is_over ? NULL : CMSG_FIRSTHDR(&message);
	if (!first || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS)
		return -1;
	count = (first->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(first), (count < MOST ? count : MOST) * sizeof(int));
	if (fds[1] >= 0)
		close(fds[1]);
	return fds[0];
}

/* Of the sockets that come by standard input, until its other end is closed. */
static int raise_buffers(void)
{
	int bytes = BUFFER_BYTES, is_over, fd;

	if (keep_only(CAP_NET_ADMIN))
		return fail("cannot give up other capabilities than NET_ADMIN", "");
	for (int raised = 0;; raised++) {
		fd = receive_fd(STDIN_FILENO, &is_over);
		if (is_over)
			return 0;
		if (raised >= AT_ONCE)
			sleep(1);
		if (fd < 0)
			continue;
		if (is_udp(fd) && (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
				   setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes))))
			fail("buffers of a UDP socket", "");
		close(fd);
	}
}

/* The program's end of a socket to a process that raises buffers. Without it the program goes on with small ones. */
static int start_raising(void)
{
	char *argv[] = { "pod-start", "buffers", NULL };
	int ends[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends)) {
		fail("no socket for buffers", "");
		return -1;
	}
	child = fork();
	if (!child) {
		if (dup2(ends[1], STDIN_FILENO) >= 0)
			execv("/proc/self/exe", argv);
		_exit(fail("buffers stay small", ""));
	}
	close(ends[1]);
	if (child < 0) {
		fail("buffers stay small", "");
		close(ends[0]);
		return -1;
	}
	return ends[0];
}

static int usage(void)
{
	fprintf(stderr, "usage: pod-start network NETNS PROGRAM [ARGUMENT]...\n"
			"       pod-start tun NETNS TUN PROGRAM [ARGUMENT]...\n");
	return 2;
}

static int run(char **program)
{
	execv(program[0], program);
	return fail(program[0], " (cannot be run)");
}

static int run_in_network(char **program)
{
	if (keep_only(CAP_NET_ADMIN))
		return fail("cannot give up other capabilities than NET_ADMIN", "");
	return run(program);
}

/* It gets the number that the program knows, and stays open over execution. */
static int hand_over(int fd, int as)
{
	if (fd == as)
		return fcntl(fd, F_SETFD, 0);
	return dup2(fd, as) < 0 || close(fd) ? -1 : 0;
}

static int run_with_tun(int own, const char *name, char **program)
{
	int tun = open_tun(name), buffers;

	if (tun < 0)
		return fail(name, " (no TUN of this name that can be attached to)");
	if (setns(own, CLONE_NEWNET))
		return fail("cannot go back", "");
	buffers = start_raising(); /* before the TUN is one that is handed over */
	if (hand_over(tun, TUN_FD) || (buffers >= 0 && hand_over(buffers, BUFFERS_FD)))
		return fail("cannot hand over the TUN", "");
	if (keep_only(-1))
		return fail("cannot give up capabilities", "");
	return run(program);
}

int main(int argc, char **argv)
{
	int with_tun = argc > 1 && !strcmp(argv[1], "tun"), own;

	if (argc == 2 && !strcmp(argv[1], "buffers"))
		return raise_buffers();
	if (argc < (with_tun ? 5 : 4) || (!with_tun && strcmp(argv[1], "network")))
		return usage();
	own = enter(argv[2]);
	if (own < 0)
		return fail(argv[2], " (no network namespace of a pod that can be entered; SYS_ADMIN is needed)");
	return with_tun ? run_with_tun(own, argv[3], argv + 4) : run_in_network(argv + 3);
}
