/* The CNI plugin: carries a request to the node's agent and its answer back. See README.md. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "answer_layout.h"
#include "interfaces.h"
#include "request.h"

#define SOCKET_PATH "/run/unbounded/cni.sock"
/* The runtime's own limit for a plugin is 4 minutes (kubelet); ADD may wait for the agent, DEL need not. */
#define ANSWER_SECONDS 110
#define DEL_SECONDS 10

/* Codes of the CNI specification 1.1.0. */
#define CODE_ENVIRONMENT 4
#define CODE_IO 5
#define CODE_TRY_AGAIN 11
/* Of STATUS. */
#define CODE_NOT_AVAILABLE 50

static unsigned char received[REQUEST_MAX];

static int write_all(int fd, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t n = write(fd, at, length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		length -= (size_t)n;
	}
	return 0;
}

/* Prints an error object as the specification has it; details may hold anything and are escaped. */
static int fail(const struct request *request, int code, const char *message, const char *details)
{
	printf("{\"cniVersion\":\"%s\",\"code\":%d,\"msg\":\"%s\",\"details\":\"", request->cni_version, code, message);
	for (const unsigned char *c = (const unsigned char *)details; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (*c < 0x20)
			printf("\\u%04x", *c);
		else
			putchar(*c);
	}
	printf("\"}\n");
	return 1;
}

static int print_version(const struct request *request)
{
	printf("{\"cniVersion\":\"%s\",\"supportedVersions\":[\"0.3.1\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n", request->cni_version);
	return 0;
}

static int connect_to_agent(int seconds)
{
	const char *path = getenv("UNBOUNDED_CNI_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = seconds};
	int fd;

	path = path ? path : SOCKET_PATH;
	if (strlen(path) >= sizeof(address.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* for connect too */
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	close(fd);
	return -1;
}

/* Reads to the end. Returns the length, or -1. */
static ssize_t read_answer(int fd)
{
	size_t length = 0;

	for (;;) {
		ssize_t n = read(fd, received + length, sizeof(received) - length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			return (ssize_t)length;
		length += (size_t)n;
		if (length == sizeof(received)) {
			errno = EMSGSIZE;
			return -1;
		}
	}
}

/* Does what the answer wants, and prints its output once all of that is done. */
static int take_answer(const struct request *request, const char *command, size_t length)
{
	static struct answer answer;
	char problem[PROBLEM_SIZE];

	/* Interfaces are of pods that are attached, and of no others. */
	if (parse_answer(received, length, &answer) || (answer.interface_count && strcmp(command, "ADD"))) {
		if (!strcmp(command, "DEL"))
			return 0; /* as without the agent */
		return fail(request, CODE_TRY_AGAIN, "the answer of the unbounded agent (node-dataplane) cannot be read",
			    "agent and plugin are not of one version");
	}
	if (answer.interface_count && settle_interfaces(getenv("CNI_NETNS"), &answer, problem))
		return fail(request, CODE_TRY_AGAIN, "an interface of the pod cannot be set up", problem);
	return write_all(STDOUT_FILENO, answer.output, answer.output_length) ? 1 : answer.exit_code;
}

static int exchange(const struct request *request, const char *command)
{
	int is_del = !strcmp(command, "DEL"), fd = connect_to_agent(is_del ? DEL_SECONDS : ANSWER_SECONDS);
	ssize_t length = -1;

	if (fd >= 0 && !write_all(fd, request->bytes, request->length) && !shutdown(fd, SHUT_WR))
		length = read_answer(fd);
	if (length > 0)
		return take_answer(request, command, (size_t)length);
	if (is_del)
		return 0; /* the pod goes in any case; the agent forgets it when it is back */
	return fail(request, strcmp(command, "STATUS") ? CODE_TRY_AGAIN : CODE_NOT_AVAILABLE,
		    "the unbounded agent (node-dataplane) does not answer on this node",
		    fd < 0 || length < 0 ? strerror(errno) : "the agent closed the connection");
}

static int is_command(const char *command)
{
	static const char *const commands[] = {"ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(command, commands[i]))
			return 1;
	return 0;
}

int main(void)
{
	struct request request = {.cni_version = "1.0.0"};
	const char *command = getenv("CNI_COMMAND"), *problem;

	/* An agent that closes while we write is an answer like any other: DEL must not die of it. */
	signal(SIGPIPE, SIG_IGN);
	if (!command)
		return fail(&request, CODE_ENVIRONMENT, "CNI_COMMAND is not set: a container runtime calls this program", "");
	problem = read_request(&request);
	if (problem)
		return fail(&request, CODE_IO, problem, "");
	if (!is_command(command))
		return fail(&request, CODE_ENVIRONMENT, "CNI_COMMAND must be ADD, DEL, CHECK, GC, STATUS or VERSION", command);
	if (!strcmp(command, "VERSION"))
		return print_version(&request);
	return exchange(&request, command);
}
