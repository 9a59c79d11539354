/* First process of a pod's sandbox: holds the namespaces open, reaps orphans, ends on SIGTERM or SIGINT. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number)
{
	(void)signal_number;
	_exit(0);
}

static void reap(int signal_number)
{
	(void)signal_number;
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

int main(void)
{
	struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};

	signal(SIGINT, end);
	signal(SIGTERM, end);
	sigaction(SIGCHLD, &on_child, NULL);
	for (;;)
		pause();
}
