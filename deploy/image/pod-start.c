/*
 * tun-start NETNS TUN PROGRAM [ARGUMENT]... - lets PROGRAM have the packets of a TUN in another network namespace, and no right of ours.
 *
 * A TUN can only be opened by who is in its namespace, and entering a pod's takes CAP_SYS_ADMIN. So this program goes there, opens the
 * TUN, comes back, gives up all capabilities for good and becomes PROGRAM, with the TUN as file descriptor 3. The TUN must be there,
 * and be persistent: it outlives PROGRAM, with its index, addresses and routes.
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
#include <sys/syscall.h>
#include <unistd.h>

enum { TUN_FD = 3 };

static int fail(const char *what, const char *advice)
{
	fprintf(stderr, "tun-start: %s: %s%s\n", what, strerror(errno), advice);
	return 1;
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

/* Under no_new_privs an execution gives nothing back. */
static int give_up_everything(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -1;
	return (int)syscall(SYS_capset, &header, none);
}

int main(int argc, char **argv)
{
	int own, there, tun;

	if (argc < 4) {
		fprintf(stderr, "usage: tun-start NETNS TUN PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	there = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (own < 0 || there < 0)
		return fail(argv[1], " (cannot be opened)");
	if (setns(there, CLONE_NEWNET))
		return fail(argv[1], " (is no network namespace that can be entered: SYS_ADMIN is needed)");
	tun = open_tun(argv[2]);
	if (tun < 0)
		return fail(argv[2], " (no TUN of this name that can be attached to)");
	if (setns(own, CLONE_NEWNET))
		return fail("cannot go back", "");
	if (tun != TUN_FD && (dup2(tun, TUN_FD) < 0 || close(tun)))
		return fail("cannot hand over the TUN", "");
	if (give_up_everything())
		return fail("cannot give up capabilities", "");
	execv(argv[3], argv + 3);
	return fail(argv[3], " (cannot be run)");
}
