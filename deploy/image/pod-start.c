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
 */
#define _GNU_SOURCE /* setns */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TUN_FD = 3 };

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
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
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

static int run_with_tun(int own, const char *name, char **program)
{
	int tun = open_tun(name);

	if (tun < 0)
		return fail(name, " (no TUN of this name that can be attached to)");
	if (setns(own, CLONE_NEWNET))
		return fail("cannot go back", "");
	if (tun != TUN_FD && (dup2(tun, TUN_FD) < 0 || close(tun)))
		return fail("cannot hand over the TUN", "");
	if (keep_only(-1))
		return fail("cannot give up capabilities", "");
	return run(program);
}

int main(int argc, char **argv)
{
	int with_tun = argc > 1 && !strcmp(argv[1], "tun"), own;

	if (argc < (with_tun ? 5 : 4) || (!with_tun && strcmp(argv[1], "network")))
		return usage();
	own = enter(argv[2]);
	if (own < 0)
		return fail(argv[2], " (no network namespace of a pod that can be entered; SYS_ADMIN is needed)");
	return with_tun ? run_with_tun(own, argv[3], argv + 4) : run_in_network(argv + 3);
}
