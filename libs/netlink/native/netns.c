#define _GNU_SOURCE
#include "netns.h"
#include "in_netns.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bind_to_path(const char *self, const char *path)
{
	int file = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int error;

	if (file < 0)
		return -errno;
	close(file);
	if (!mount(self, path, "none", MS_BIND, NULL))
		return 0;
	error = -errno;
	unlink(path);
	return error;
}

static int new_netns(void *argument)
{
	const char *path = argument;
	char self[64];
	int error, fd;

	if (unshare(CLONE_NEWNET))
		return -errno;
	snprintf(self, sizeof(self), "/proc/self/task/%ld/ns/net", (long)syscall(SYS_gettid));
	error = path[0] ? bind_to_path(self, path) : 0;
	if (error)
		return error;
	fd = open(self, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

napi_value create_netns(napi_env env, napi_callback_info info)
{
	char path[PATH_MAX];
	napi_value args[1], result;
	int fd;

	if (!take_args(env, info, 1, args) || !string_arg(env, args[0], "path", path, sizeof(path)))
		return NULL;
	fd = on_own_thread(new_netns, path);
	if (fd < 0)
		return throw_errno(env, -fd, "create network namespace");
	napi_create_int32(env, fd, &result);
	return result;
}
