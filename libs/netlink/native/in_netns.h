/* Work inside another network namespace. Also compiled into the addon of libbpf-ts. */
#ifndef UNBOUNDED_IN_NETNS_H
#define UNBOUNDED_IN_NETNS_H

/*
 * Runs work(argument) on a short thread that entered the namespace first, and waits for it. The calling thread never
 * changes its namespace: libuv's pool threads would stay behind, and the process would live in two namespaces.
 * netns_fd -1 stays in the caller's namespace (and needs no thread). Returns work's result (>= 0) or -errno.
 */
int in_netns(int netns_fd, int (*work)(void *argument), void *argument);
/* Always on a thread of its own: for work that changes the namespace of its thread. */
int on_own_thread(int (*work)(void *argument), void *argument);

#endif
