/*
 * agent-start PROGRAM [ARGUMENT]... - lets the node's agent run without privileges that it needs only once.
 *
 * Container runtimes mount /proc/sys read-only unless the container is privileged, but the agent sets net.ipv4.ip_forward
 * and settings of the devices that it makes, whenever it makes them. So this program mounts /proc/sys/net anew, writable
 * (the rest of /proc/sys stays read-only; who may write which setting is still the kernel's decision, by NET_ADMIN),
 * gives up CAP_SYS_ADMIN, which mounting takes, for good, and becomes PROGRAM.
 *
 * "For good": root gets all capabilities of its bounding set again when it executes a program; under no_new_privs
 * (prctl(2)) it gets none that it has given up.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SETTINGS "/proc/sys/net"

static int fail(const char *what, const char *advice)
{
	fprintf(stderr, "agent-start: %s: %s%s\n", what, strerror(errno), advice);
	return 1;
}

static int give_up(unsigned int capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
	unsigned int bit = ~(1U << (capability % 32)), word = capability / 32;

	if (syscall(SYS_capget, &header, data))
		return -1;
	data[word].effective &= bit;
	data[word].permitted &= bit;
	data[word].inheritable &= bit;
	/* No ambient set is left with it either: ambient capabilities are always permitted and inheritable too. */
	return (int)syscall(SYS_capset, &header, data);
}

int main(int argc, char **argv)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (argc < 2) {
		fprintf(stderr, "usage: agent-start PROGRAM [ARGUMENT]...\n");
		return 2;
	}
	if (mount(SETTINGS, SETTINGS, NULL, MS_BIND, NULL) || mount(NULL, SETTINGS, NULL, MS_BIND | MS_REMOUNT | flags, NULL))
		return fail("cannot make " SETTINGS " writable",
			    ": the container needs the capability SYS_ADMIN, and no AppArmor or SELinux rule against mounts");
	if (give_up(CAP_SYS_ADMIN) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return fail("cannot give up SYS_ADMIN", "");
	execv(argv[1], argv + 1);
	return fail(argv[1], " (cannot be run)");
}
