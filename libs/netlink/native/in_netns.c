#define _GNU_SOURCE
#include "in_netns.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>

struct job {
	int netns_fd;
	int (*work)(void *argument);
	void *argument;
	int result;
};

/* Entering a namespace takes CAP_SYS_ADMIN, even the one that the thread is in: then there is nothing to enter. */
static int is_elsewhere(int netns_fd)
{
	struct stat here, there;

	return stat("/proc/thread-self/ns/net", &here) || fstat(netns_fd, &there) || here.st_dev != there.st_dev ||
	       here.st_ino != there.st_ino;
}

static void *run_job(void *pointer)
{
	struct job *job = pointer;

	if (job->netns_fd >= 0 && is_elsewhere(job->netns_fd) && setns(job->netns_fd, CLONE_NEWNET))
		job->result = -errno;
	else
		job->result = job->work(job->argument);
	return NULL;
}

static int on_thread(struct job *job)
{
	sigset_t all, before;
	pthread_t thread;
	int error;

	/* Node's signal handlers must not run on this thread. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, NULL, run_job, job);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return -error;
	pthread_join(thread, NULL);
	return job->result;
}

int in_netns(int netns_fd, int (*work)(void *argument), void *argument)
{
	struct job job = { .netns_fd = netns_fd, .work = work, .argument = argument };

	return netns_fd < 0 ? work(argument) : on_thread(&job);
}

int on_own_thread(int (*work)(void *argument), void *argument)
{
	struct job job = { .netns_fd = -1, .work = work, .argument = argument };

	return on_thread(&job);
}
